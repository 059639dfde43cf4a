// Unpacking of tiles with AVX-512, shared by the AVX-512 and AMX products; the layouts are in format.h.
#pragma once
#include <immintrin.h>

#include "gemm_kernels.h"

namespace twostroke {
namespace {

#define TWOSTROKE_INLINE inline __attribute__((always_inline))

constexpr int line = 64;

TWOSTROKE_INLINE __m512i load512(const void* p) { return _mm512_load_si512(p); }
TWOSTROKE_INLINE __m256i load256(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
TWOSTROKE_INLINE __m512 load_halves(const uint8_t* p) { return _mm512_cvtph_ps(load256(p)); }

// a | (b & c)
TWOSTROKE_INLINE __m512i or_and(__m512i a, __m512i b, __m512i c) { return _mm512_ternarylogic_epi32(a, b, c, 0xf8); }

// Shift 16-bit lanes left (positive) or right; callers mask away what crosses bytes.
TWOSTROKE_INLINE __m512i shift(__m512i v, int left) {
  return left > 0 ? _mm512_slli_epi16(v, left) : left < 0 ? _mm512_srli_epi16(v, -left) : v;
}

// Quad i of 32 inputs, its codes unsigned, except Q8_0's, which stay signed; `i` is a constant once loops are unrolled.
template <Type T>
TWOSTROKE_INLINE __m512i quad(const uint8_t* body, int i) {
  if constexpr (T == Type::q8_0) return load512(body + i * line);
  const uint8_t* more = body + nibble_bytes;
  const __m512i codes = _mm512_and_si512(shift(load512(body + i % 4 * line), i < 4 ? 0 : -4), _mm512_set1_epi8(15));
  if constexpr (is_five(T)) return or_and(codes, shift(load512(more), 4 - i), _mm512_set1_epi8(16));
  if constexpr (T == Type::q6_k)
    return or_and(codes, shift(load512(more + i / 4 * line), 4 - 2 * (i % 4)), _mm512_set1_epi8(48));
  return codes;
}

template <Type T>
TWOSTROKE_INLINE void unpack(const uint8_t* body, __m512i w[8]) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) w[i] = quad<T>(body, i);
}

// The scale block of Q4_K and Q5_K: bytes S[8][16] and N[4][16][2].
struct SixBits {
  __m512i scales[2], minimums[2];
};

TWOSTROKE_INLINE SixBits unpack_scale_block(const uint8_t* block) {
  const __m512i nibble = _mm512_set1_epi8(15), pair = _mm512_set1_epi8(48);
  const __m512i s = load512(block), n = load512(block + line), high = load512(block + 2 * line);
  const auto low_of = [&](__m512i v) { return _mm512_and_si512(v, nibble); };
  const auto high_of = [&](__m512i v) { return _mm512_and_si512(_mm512_srli_epi16(v, 4), nibble); };
  return {{or_and(low_of(s), shift(high, 4), pair), or_and(high_of(s), shift(high, 2), pair)},
          {or_and(low_of(n), high, pair), or_and(high_of(n), shift(high, -2), pair)}};
}

// The minimums as pairs of 16-bit numbers, for a pairwise product with sums of activations.
TWOSTROKE_INLINE void widen_minimums(const SixBits& b, __m512i pairs[4]) {
  pairs[0] = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(b.minimums[0]));
  pairs[1] = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(b.minimums[0], 1));
  pairs[2] = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(b.minimums[1]));
  pairs[3] = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(b.minimums[1], 1));
}

TWOSTROKE_INLINE __m512i broadcast4(const void* p) {
  int32_t v;
  __builtin_memcpy(&v, p, sizeof v);
  return _mm512_set1_epi32(v);
}

// Sum over sub-blocks of minimum times sum of activations, for the row whose sums are given.
TWOSTROKE_INLINE __m512i dot_minimums(const __m512i pairs[4], const int16_t* sum32) {
  __m512i n = _mm512_dpwssd_epi32(_mm512_setzero_si512(), pairs[0], broadcast4(sum32));
  n = _mm512_dpwssd_epi32(n, pairs[1], broadcast4(sum32 + 2));
  n = _mm512_dpwssd_epi32(n, pairs[2], broadcast4(sum32 + 4));
  return _mm512_dpwssd_epi32(n, pairs[3], broadcast4(sum32 + 6));
}

// Add one super-block of exact sums to a row's outputs.
TWOSTROKE_INLINE __m512 add_affine(__m512 acc, __m512i total, __m512i low, __m512 d, __m512 dmin, float scale) {
  const __m512 t = _mm512_fmsub_ps(_mm512_cvtepi32_ps(total), d, _mm512_mul_ps(_mm512_cvtepi32_ps(low), dmin));
  return _mm512_fmadd_ps(t, _mm512_set1_ps(scale), acc);
}

TWOSTROKE_INLINE __m512 add_q6_k(__m512 acc, __m512i total, __m512 d, float scale) {
  return _mm512_fmadd_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(total), d), _mm512_set1_ps(scale), acc);
}

TWOSTROKE_INLINE void store_row(const Span& s, int64_t n, int64_t m, __m512 v) {
  const int64_t first = n * tile_rows, left = s.rows - first;
  const __mmask16 mask = left >= tile_rows ? 0xffff : static_cast<__mmask16>((1u << left) - 1);
  float* out = s.out + m * s.out_stride + first;
  if (s.bias) v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(mask, s.bias + first));
  if (s.add) v = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, out), v);
  _mm512_mask_storeu_ps(out, mask, v);
}

// Ask for what will be needed after the next `Ahead` bytes of weights, from memory to the L2 cache: more lines may be
// on their way there than to L1.
template <int Bytes, int Ahead = 8192, _mm_hint Hint = _MM_HINT_T1>
TWOSTROKE_INLINE void prefetch(const uint8_t* p) {
#pragma GCC unroll 8
  for (int i = 0; i < Bytes; i += line) _mm_prefetch(reinterpret_cast<const char*>(p + Ahead + i), Hint);
}

}  // namespace
}  // namespace twostroke
