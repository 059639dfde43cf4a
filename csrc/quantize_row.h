// Quantisation of one activation row, written as plain loops that each instruction set compiles for itself.
//
// Codes are x / scale rounded to nearest even, scale = largest magnitude / 127.  A group with a NaN or an infinity gets
// codes 0 and scale NaN, so that every output that reads it is NaN; a group below 1e-30 throughout counts as zero.
// Magnitudes are compared as integers, where NaN and infinity rank above all finite numbers.
#pragma once
#include <cstdint>
#include <cstring>

#include "gemm_kernels.h"
#include "half.h"

namespace twostroke {
namespace {

constexpr uint32_t infinity_bits = 0x7f800000, quiet_nan_bits = 0x7fc00000;
constexpr float smallest = 1e-30f;
constexpr float round_magic = 12582912.0f;  // 1.5 * 2^23: adding it leaves the rounded integer in the low mantissa bits
constexpr int32_t round_bits = 0x4b400000;

inline uint32_t largest_magnitude(const float* x, int n) {
  int32_t most = 0;
  for (int i = 0; i < n; i++) {
    int32_t bits;
    memcpy(&bits, x + i, sizeof bits);
    bits &= 0x7fffffff;
    most = bits > most ? bits : most;
  }
  return static_cast<uint32_t>(most);
}

inline void round_codes(const float* x, int n, float inverse, int8_t* codes) {
  for (int i = 0; i < n; i++) {
    const float shifted = x[i] * inverse + round_magic;
    int32_t bits;
    memcpy(&bits, &shifted, sizeof bits);
    codes[i] = static_cast<int8_t>(bits - round_bits);
  }
}

inline float quantize_group(const float* x, int n, int8_t* codes) {
  const uint32_t bits = largest_magnitude(x, n);
  const float most = float_of_bits(bits);
  if (bits < infinity_bits && most >= smallest) {
    round_codes(x, n, 127.0f / most, codes);
    return most / 127.0f;
  }
  memset(codes, 0, n);
  return bits < infinity_bits ? 0.0f : float_of_bits(quiet_nan_bits);
}

inline int32_t sum_codes(const int8_t* codes, int n) {
  int32_t sum = 0;
  for (int i = 0; i < n; i++) sum += codes[i];
  return sum;
}

inline void quantize_row_g32(const float* x, int64_t groups, const QuantizedRow& out) {
  for (int64_t g = 0; g < groups; g++) {
    const float scale = quantize_group(x + g * group_32, group_32, out.codes + g * group_32);
    const int32_t sum = sum_codes(out.codes + g * group_32, group_32);
    out.scale[g] = scale;
    out.minus8[g] = -8 * sum;
    out.scaled_sum[g] = scale * static_cast<float>(sum);
  }
}

inline void quantize_row_g256(const float* x, int64_t groups, const QuantizedRow& out) {
  for (int64_t g = 0; g < groups; g++) {
    int8_t* codes = out.codes + g * group_256;
    out.scale[g] = quantize_group(x + g * group_256, group_256, codes);
    for (int i = 0; i < 16; i++) {
      const int32_t sum = sum_codes(codes + 16 * i, 16);
      out.sum16[g * 16 + i] = static_cast<int16_t>(sum);
      out.minus32[g * 16 + i] = -32 * sum;
    }
    for (int i = 0; i < 8; i++)
      out.sum32[g * 8 + i] = static_cast<int16_t>(out.sum16[g * 16 + 2 * i] + out.sum16[g * 16 + 2 * i + 1]);
  }
}

}  // namespace
}  // namespace twostroke
