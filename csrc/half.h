// Half-precision and bfloat16 numbers as floats, exactly, without any instruction set.
#pragma once
#include <cstdint>
#include <cstring>

namespace twostroke {

static inline float float_of_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

// Subnormal halves are an integer times 2^-24; the others only move fields.
static inline float float_of_half(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, exponent = (h >> 10) & 31, mantissa = h & 1023;
  if (exponent == 0) {
    const float f = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -f : f;
  }
  return float_of_bits(sign | (exponent == 31 ? 255u << 23 : (exponent + 112) << 23) | mantissa << 13);
}

static inline float float_of_bfloat(uint16_t h) { return float_of_bits(static_cast<uint32_t>(h) << 16); }

static inline uint16_t load_u16(const uint8_t* p) {
  uint16_t v;
  memcpy(&v, p, sizeof v);
  return v;
}

}  // namespace twostroke
