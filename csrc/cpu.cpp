// Detection of instruction sets and the choice of a path; see cpu.h.
#include "cpu.h"

#include <cstdlib>
#include <stdexcept>

#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace twostroke {
namespace {

const char* const names[] = {"portable", "avx2", "avx512", "amx", "neon"};
constexpr int paths = 5;

#if defined(__x86_64__)
bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2") &&
         __builtin_cpu_supports("f16c");
}

bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni");
}

// AMX needs the processor's word (leaf 7) and the kernel's permission for the tile state, asked for once per process.
bool has_amx() {
#if defined(__linux__)
  unsigned eax = 7, ebx = 0, ecx = 0, edx = 0;
  __asm__("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  const bool tile = edx & (1u << 24), int8 = edx & (1u << 25);
  constexpr int request_permission = 0x1023, tile_data = 18;
  return has_avx512() && tile && int8 && syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
  return false;
#endif
}
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
bool has_amx() { return false; }
#endif

// Every 64-bit Arm has NEON; the path also wants its dot products, an extension of ARMv8.2.
bool has_neon() {
#if defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long dot_products = 1ul << 20;  // HWCAP_ASIMDDP
  return getauxval(AT_HWCAP) & dot_products;
#else
  return false;
#endif
}

bool supported(Path path) {
  static const bool have[paths] = {true, has_avx2(), has_avx512(), has_amx(), has_neon()};
  return have[static_cast<int>(path)];
}

Path best() {
  for (Path p : {Path::neon, Path::amx, Path::avx512, Path::avx2})
    if (supported(p)) return p;
  return Path::portable;
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (const auto& w : words) all += (all.empty() ? "" : ", ") + w;
  return all;
}

Path parse(const std::string& name) {
  for (int i = 0; i < paths; i++)
    if (name == names[i] && supported(static_cast<Path>(i))) return static_cast<Path>(i);
  throw std::invalid_argument("kernel path '" + name +
                              "' is not available here; choose one of: " + joined(supported_paths()));
}

Path initial() {
  const char* forced = std::getenv("TWOSTROKE_KERNELS");
  return forced && *forced ? parse(forced) : best();
}

Path& current() {
  static Path path = initial();
  return path;
}

}  // namespace

Path kernel_path() { return current(); }
void set_kernel_path(const std::string& name) { current() = parse(name); }
std::string path_name(Path path) { return names[static_cast<int>(path)]; }

std::vector<std::string> supported_paths() {
  std::vector<std::string> all;
  for (int i = 0; i < paths; i++)
    if (supported(static_cast<Path>(i))) all.emplace_back(names[i]);
  return all;
}

}  // namespace twostroke
