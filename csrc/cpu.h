// Which instruction set the kernels use: the best one this machine has, unless a person or a test forces another.
//
// Every path computes the same bits, so the choice is about speed alone.
#pragma once
#include <string>
#include <vector>

namespace twostroke {

enum class Path { portable, avx2, avx512, amx, neon };

// The path in use. The first call reads TWOSTROKE_KERNELS; throws std::invalid_argument if it names a path this machine
// lacks.
Path kernel_path();

// Force a path by name: "portable", "avx2", "avx512", "amx" or "neon". Throws std::invalid_argument if unknown or not
// supported here. Not to be called while a kernel runs.
void set_kernel_path(const std::string& name);

std::string path_name(Path path);
std::vector<std::string> supported_paths();  // slowest first; the last one is the default

}  // namespace twostroke
