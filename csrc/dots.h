// Exact dot products of stored integers with rounded floats, four at a time, in sixteen lanes.
//
// A quad is four integers as one instruction set multiplies them; a group is the four that each lane has for it.  Sums
// are 32-bit integers, so neither their order nor the instruction set enters the result, and a quad of zeros adds
// nothing whatever it meets.  No sum overflows: bytes meet up to 1024 integers of 14 bits, 127 * 16383 * 1024 < 2^31,
// and words meet integers of 16 bits whose magnitudes together stay below 2^18 even where all 1024 were rounded up by a
// half, 8191 * 2^18 < 2^31.
#pragma once
#include "grid.h"
#include "lanes.h"
#include "store.h"

namespace twostroke {
namespace TWOSTROKE_PATH {

template <class Code>
constexpr float largest_code = sizeof(Code) == 1 ? 127.0f : 8191.0f;

// Bounds of the integers that they meet.
template <class Code>
constexpr Bounds rounded_bounds = sizeof(Code) == 1 ? Bounds{16383.0f, unbounded} : Bounds{32767.0f, 261631.0f};

#if defined(__AVX512F__)

struct alignas(8) Quad { int16_t even[2], odd[2]; };  // multiplied in pairs: numbers 0 and 2, 1 and 3
struct Group { __m512i even, odd; };                  // of each lane, as 16 bits
template <class Code> using QuadOf = Quad;
template <class Code> using DotsOf = I;

INLINE Group load_group(const int8_t* p) {
  const __m512i x = _mm512_loadu_si512(p);
  return {_mm512_srai_epi16(_mm512_slli_epi16(x, 8), 8), _mm512_srai_epi16(x, 8)};
}
INLINE Group load_group(const int16_t* p) { return {_mm512_loadu_si512(p), _mm512_loadu_si512(p + 32)}; }
INLINE __m512i pair(const int16_t* p) {
  int32_t both;
  std::memcpy(&both, p, sizeof both);
  return _mm512_set1_epi32(both);
}
INLINE I add_dots(I sums, const Group& x, const Quad& q) {
  return {_mm512_dpwssd_epi32(_mm512_dpwssd_epi32(sums.v, x.even, pair(q.even)), x.odd, pair(q.odd))};
}

INLINE void store_quads(Quad* to, I x) {  // four, of sixteen integers
  const __m128i order = _mm_setr_epi8(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15);
  const __m256i quads = _mm256_shuffle_epi8(_mm512_cvtepi32_epi16(x.v), _mm256_broadcastsi128_si256(order));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), quads);
}

#elif defined(__AVX2__)

struct alignas(8) Quad { int16_t even[2], odd[2]; };
struct Group { __m256i even_a, odd_a, even_b, odd_b; };
template <class Code> using QuadOf = Quad;
template <class Code> using DotsOf = I;

INLINE __m256i load_half_group(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
INLINE Group load_group(const int8_t* p) {
  const __m256i a = load_half_group(p), b = load_half_group(p + 32);
  return {_mm256_srai_epi16(_mm256_slli_epi16(a, 8), 8), _mm256_srai_epi16(a, 8),
          _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8), _mm256_srai_epi16(b, 8)};
}
INLINE Group load_group(const int16_t* p) {
  return {load_half_group(p), load_half_group(p + 32), load_half_group(p + 16), load_half_group(p + 48)};
}
INLINE __m256i pair(const int16_t* p) {
  int32_t both;
  std::memcpy(&both, p, sizeof both);
  return _mm256_set1_epi32(both);
}
INLINE __m256i add_products(__m256i sums, __m256i x, __m256i y) {
  return _mm256_add_epi32(sums, _mm256_madd_epi16(x, y));
}
INLINE I add_dots(I sums, const Group& x, const Quad& q) {
  const __m256i even = pair(q.even), odd = pair(q.odd);
  return {add_products(add_products(sums.a, x.even_a, even), x.odd_a, odd),
          add_products(add_products(sums.b, x.even_b, even), x.odd_b, odd)};
}

INLINE void store_two_quads(Quad* to, __m256i x) {
  const __m128i order = _mm_setr_epi8(0, 1, 8, 9, 4, 5, 12, 13, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i quads = _mm256_shuffle_epi8(x, _mm256_broadcastsi128_si256(order));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to), _mm256_castsi256_si128(quads));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(to + 1), _mm256_extracti128_si256(quads, 1));
}
INLINE void store_quads(Quad* to, I x) {
  store_two_quads(to, x.a);
  store_two_quads(to + 2, x.b);
}

#elif defined(TWOSTROKE_NEON)

struct alignas(8) ByteQuad { int8_t high[4], low[4]; };  // 128 * high + low: the instruction multiplies bytes
struct ByteGroup { int8x16_t a, b, c, d; };
struct ByteDots { int32x4_t high[4], low[4]; };
struct alignas(8) WordQuad { int16_t even[2], odd[2]; };
struct WordGroup { int16x8_t even[4], odd[4]; };
template <class Code> using QuadOf = std::conditional_t<sizeof(Code) == 1, ByteQuad, WordQuad>;
template <class Code> using DotsOf = std::conditional_t<sizeof(Code) == 1, ByteDots, I>;

INLINE ByteGroup load_group(const int8_t* p) {
  return {vld1q_s8(p), vld1q_s8(p + 16), vld1q_s8(p + 32), vld1q_s8(p + 48)};
}
INLINE int8x16_t four(const int8_t* p) {
  int32_t bytes;
  std::memcpy(&bytes, p, sizeof bytes);
  return vreinterpretq_s8_s32(vdupq_n_s32(bytes));
}
INLINE void add_products(int32x4_t* sums, const ByteGroup& x, int8x16_t y) {
  sums[0] = vdotq_s32(sums[0], x.a, y), sums[1] = vdotq_s32(sums[1], x.b, y);
  sums[2] = vdotq_s32(sums[2], x.c, y), sums[3] = vdotq_s32(sums[3], x.d, y);
}
INLINE ByteDots add_dots(ByteDots sums, const ByteGroup& x, const ByteQuad& q) {
  add_products(sums.high, x, four(q.high));
  add_products(sums.low, x, four(q.low));
  return sums;
}
INLINE uint32x4_t joined(int32x4_t high, int32x4_t low) {
  return vreinterpretq_u32_s32(vaddq_s32(vshlq_n_s32(high, 7), low));
}
INLINE I total(const ByteDots& sums) {
  return {joined(sums.high[0], sums.low[0]), joined(sums.high[1], sums.low[1]), joined(sums.high[2], sums.low[2]),
          joined(sums.high[3], sums.low[3])};
}

INLINE WordGroup load_group(const int16_t* p) {
  return {{vld1q_s16(p), vld1q_s16(p + 8), vld1q_s16(p + 16), vld1q_s16(p + 24)},
          {vld1q_s16(p + 32), vld1q_s16(p + 40), vld1q_s16(p + 48), vld1q_s16(p + 56)}};
}
INLINE int16x8_t pair(const int16_t* p) {
  int32_t both;
  std::memcpy(&both, p, sizeof both);
  return vreinterpretq_s16_s32(vdupq_n_s32(both));
}
INLINE uint32x4_t add_products(uint32x4_t sums, int16x8_t x, int16x8_t y) {
  const int32x4_t products = vpaddq_s32(vmull_s16(vget_low_s16(x), vget_low_s16(y)), vmull_high_s16(x, y));
  return vaddq_u32(sums, vreinterpretq_u32_s32(products));
}
INLINE I add_dots(I sums, const WordGroup& x, const WordQuad& q) {
  const int16x8_t even = pair(q.even), odd = pair(q.odd);
  return {add_products(add_products(sums.a, x.even[0], even), x.odd[0], odd),
          add_products(add_products(sums.b, x.even[1], even), x.odd[1], odd),
          add_products(add_products(sums.c, x.even[2], even), x.odd[2], odd),
          add_products(add_products(sums.d, x.even[3], even), x.odd[3], odd)};
}

INLINE uint16x8_t narrowed(uint32x4_t a, uint32x4_t b) {  // the lower halves, in order
  return vuzp1q_u16(vreinterpretq_u16_u32(a), vreinterpretq_u16_u32(b));
}
INLINE uint32x4_t narrowed(const I& x) {  // the lowest bytes, in order
  const uint8x16_t front = vreinterpretq_u8_u16(narrowed(x.a, x.b)), back = vreinterpretq_u8_u16(narrowed(x.c, x.d));
  return vreinterpretq_u32_u8(vuzp1q_u8(front, back));
}
INLINE void store_quads(ByteQuad* to, I x) {
  const uint32x4_t h = narrowed(shift_right<7>(x)), l = narrowed(bit_and(x, all(int32_t{127})));
  const uint32x4x2_t quads = {{vzip1q_u32(h, l), vzip2q_u32(h, l)}};
  std::memcpy(to, &quads, sizeof quads);
}
INLINE void store_quads(WordQuad* to, I x) {
  uint16_t words[lanes];
  vst1q_u16(words, narrowed(x.a, x.b)), vst1q_u16(words + 8, narrowed(x.c, x.d));
  for (int i = 0; i < lanes; i++) {
    WordQuad& quad = to[i / 4];
    (i % 2 ? quad.odd : quad.even)[i % 4 / 2] = static_cast<int16_t>(words[i]);
  }
}

#else

struct alignas(8) Quad { int16_t v[4]; };
struct Group { int16_t v[lanes][4]; };
template <class Code> using QuadOf = Quad;
template <class Code> using DotsOf = I;

template <class Code>
INLINE Group load_group(const Code* p) {
  Group x;
  for (int i = 0; i < lanes; i++)
    for (int j = 0; j < 4; j++) x.v[i][j] = p[in_group<Code>(i, j)];
  return x;
}
INLINE I add_dots(I sums, const Group& x, const Quad& q) {
  for (int i = 0; i < lanes; i++)
    for (int j = 0; j < 4; j++) sums.v[i] += static_cast<uint32_t>(x.v[i][j] * q.v[j]);
  return sums;
}

INLINE void store_quads(Quad* to, I x) {
  for (int i = 0; i < lanes; i++) to[i / 4].v[i % 4] = static_cast<int16_t>(x.v[i]);
}

#endif

template <class Code> using GroupOf = decltype(load_group(static_cast<const Code*>(nullptr)));
INLINE I total(I sums) { return sums; }

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
