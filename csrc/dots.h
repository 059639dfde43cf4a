// Exact dot products of bytes with integers of 14 bits, four at a time, in sixteen lanes.
//
// A quad is four integers as one instruction set multiplies them; a lane has four bytes for it.  Sums are 32-bit
// integers, so neither their order nor the instruction set enters the result, and bytes times a quad of zeros add
// nothing whatever they are.  No sum of up to 1024 products overflows: 16383 * 128 * 1024 < 2^31.
#pragma once
#include "lanes.h"

namespace twostroke {
namespace TWOSTROKE_PATH {

#if defined(__AVX512F__)

struct alignas(8) Quad { int16_t even[2], odd[2]; };  // multiplied in pairs: numbers 0 and 2, 1 and 3
struct Bytes { __m512i even, odd; };                  // of each lane, widened to 16 bits
using Dots = I;

INLINE Bytes load_bytes(const int8_t* p) {
  const __m512i x = _mm512_loadu_si512(p);
  return {_mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8), _mm512_srai_epi16(x, 8)};
}
INLINE __m512i pair(const int16_t* p) {
  int32_t both;
  std::memcpy(&both, p, sizeof both);
  return _mm512_set1_epi32(both);
}
INLINE Dots no_dots() { return all(int32_t{0}); }
INLINE Dots add_dots(Dots sums, Bytes x, const Quad& q) {
  return {_mm512_dpwssd_epi32(_mm512_dpwssd_epi32(sums.v, x.even, pair(q.even)), x.odd, pair(q.odd))};
}
INLINE I total(Dots sums) { return sums; }

INLINE void store_two_quads(Quad* to, int stride, __m128i x) {
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), x);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to + stride), _mm_unpackhi_epi64(x, x));
}
// Sixteen integers as four quads, `stride` apart.
INLINE void store_quads(Quad* to, int stride, I x) {
  const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
  const __m256i quads = _mm256_shuffle_epi8(_mm512_cvtepi32_epi16(x.v), _mm256_broadcastsi128_si256(order));
  store_two_quads(to, stride, _mm256_castsi256_si128(quads));
  store_two_quads(to + 2 * stride, stride, _mm256_extracti128_si256(quads, 1));
}

#elif defined(__AVX2__)

struct alignas(8) Quad { int16_t even[2], odd[2]; };
struct Bytes { __m256i even_a, odd_a, even_b, odd_b; };
using Dots = I;

INLINE Bytes load_bytes(const int8_t* p) {
  const __m256i a = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  const __m256i b = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 32));
  return {_mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8), _mm256_srai_epi16(a, 8),
          _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8), _mm256_srai_epi16(b, 8)};
}
INLINE __m256i pair(const int16_t* p) {
  int32_t both;
  std::memcpy(&both, p, sizeof both);
  return _mm256_set1_epi32(both);
}
INLINE __m256i add_products(__m256i sums, __m256i x, __m256i y) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(x, y));
}
INLINE Dots no_dots() { return all(int32_t{0}); }
INLINE Dots add_dots(Dots sums, Bytes x, const Quad& q) {
  const __m256i even = pair(q.even), odd = pair(q.odd);
  return {add_products(add_products(sums.a, x.even_a, even), x.odd_a, odd),
          add_products(add_products(sums.b, x.even_b, even), x.odd_b, odd)};
}
INLINE I total(Dots sums) { return sums; }

INLINE void store_two_quads(Quad* to, int stride, __m256i x) {
  const __m128i order = _mm_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i quads = _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(quads));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to + stride), _mm256_extracti128_si256(quads, 1));
}
INLINE void store_quads(Quad* to, int stride, I x) {
  store_two_quads(to, stride, x.a);
  store_two_quads(to + 2 * stride, stride, x.b);
}

#elif defined(TWOSTROKE_NEON)

struct alignas(8) Quad { int8_t high[4], low[4]; };  // 128 * high + low: the instruction multiplies bytes
struct Bytes { int8x16_t a, b, c, d; };
struct Dots { int32x4_t high[4], low[4]; };

INLINE Bytes load_bytes(const int8_t* p) { return {vld1q_s8(p), vld1q_s8(p + 16), vld1q_s8(p + 32), vld1q_s8(p + 48)}; }
INLINE int8x16_t four(const int8_t* p) {
  int32_t bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  return vreinterpretq_s8_s32(vdupq_n_s32(bytes));
}
INLINE void add_products(int32x4_t* sums, Bytes x, int8x16_t y) {
  sums[0] = vdotq_s32(sums[0], x.a, y), sums[1] = vdotq_s32(sums[1], x.b, y);
  sums[2] = vdotq_s32(sums[2], x.c, y), sums[3] = vdotq_s32(sums[3], x.d, y);
}
INLINE Dots no_dots() {
  const int32x4_t zero = vdupq_n_s32(0);
  return {{zero, zero, zero, zero}, {zero, zero, zero, zero}};
}
INLINE Dots add_dots(Dots sums, Bytes x, const Quad& q) {
  add_products(sums.high, x, four(q.high));
  add_products(sums.low, x, four(q.low));
  return sums;
}
INLINE uint32x4_t joined(int32x4_t high, int32x4_t low) {
  return vreinterpretq_u32_s32(vaddq_s32(vshlq_n_s32(high, 7), low));
}
INLINE I total(const Dots& sums) {
  return {joined(sums.high[0], sums.low[0]), joined(sums.high[1], sums.low[1]), joined(sums.high[2], sums.low[2]),
          joined(sums.high[3], sums.low[3])};
}

INLINE uint32x4_t narrowed(uint32x4_t a, uint32x4_t b, uint32x4_t c, uint32x4_t d) {  // the lowest bytes, in order
  const uint16x8_t front = vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
  const uint16x8_t back = vuzp1q_u16(vreinterpretq_u16_u32(c), vreinterpretq_u16_u32(d));
  return vreinterpretq_u32_u8(vuzp1q_u8(vreinterpretq_u8_u16(front), vreinterpretq_u8_u16(back)));
}
INLINE void store_quads(Quad* to, int stride, I x) {
  const I high = shift_right<7>(x), low = bit_and(x, all(int32_t{127}));  // of `high` the lowest byte is kept
  const uint32x4_t h = narrowed(high.a, high.b, high.c, high.d), l = narrowed(low.a, low.b, low.c, low.d);
  const uint64x2_t front = vreinterpretq_u64_u32(vzip1q_u32(h, l)), back = vreinterpretq_u64_u32(vzip2q_u32(h, l));
  const uint64_t quads[4] = {vgetq_lane_u64(front, 0), vgetq_lane_u64(front, 1), vgetq_lane_u64(back, 0),
                             vgetq_lane_u64(back, 1)};
  for (int i = 0; i < 4; i++) std::memcpy(to + i * stride, quads + i, sizeof(Quad));
}

#else

struct alignas(8) Quad { int16_t v[4]; };
struct Bytes { int8_t v[4 * lanes]; };
using Dots = I;

INLINE Bytes load_bytes(const int8_t* p) {
  Bytes x;
  std::memcpy(x.v, p, sizeof x.v);
  return x;
}
INLINE Dots no_dots() { return all(int32_t{0}); }
INLINE Dots add_dots(Dots sums, const Bytes& x, const Quad& q) {
  for (int i = 0; i < lanes; i++)
    for (int j = 0; j < 4; j++) sums.v[i] += static_cast<uint32_t>(x.v[4 * i + j] * q.v[j]);
  return sums;
}
INLINE I total(const Dots& sums) { return sums; }

INLINE void store_quads(Quad* to, int stride, I x) {
  for (int i = 0; i < lanes; i++) to[i / 4 * stride].v[i % 4] = static_cast<int16_t>(x.v[i]);
}

#endif

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
