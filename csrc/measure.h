// Timings of this machine for benchmarks and calibration: how fast memory is read, how long a sweep of products takes.
#pragma once
#include <cstddef>
#include <vector>

#include "gemm.h"

namespace twostroke {

// GB/s at which all threads of the pool together read `bytes` of memory, each its own contiguous part, `repeats` times.
std::vector<double> read_bandwidth(Pool& pool, size_t bytes, int repeats);

// Seconds of one pass over all weights with M rows of activations each, `repeats` times; quantisation is not included.
std::vector<double> sweep_seconds(Pool& pool, const std::vector<const Weight*>& weights, int64_t M, int repeats);

}  // namespace twostroke
