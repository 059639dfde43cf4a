// The products with AVX2: one tile as two halves of 8 rows, against up to 4 activation rows.
//
// A byte product (vpmaddubsw) adds two products into 16 bits with saturation.  Codes of 4 bits leave room for 8 quads
// in 16 bits (8 * 2 * 15 * 127 = 30480), of 5 bits for 4 (31496), of 6 bits for 2 (32004); then a 16-bit pairwise
// product with the sub-block scales (or ones) widens to 32.  Q8_0 multiplies magnitudes by signed activations (2 * 128
// * 127).
#include <immintrin.h>

#include "by_type.h"
#include "gemm_kernels.h"
#include "quantize_row.h"

namespace twostroke {
namespace {

#define TWOSTROKE_INLINE inline __attribute__((always_inline))

constexpr int line = 64, half_line = 32, half_rows = 8;

TWOSTROKE_INLINE __m256i load(const void* p) { return _mm256_load_si256(static_cast<const __m256i*>(p)); }
TWOSTROKE_INLINE __m128i load128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
TWOSTROKE_INLINE __m256 load_halves(const uint8_t* p) { return _mm256_cvtph_ps(load128(p)); }

TWOSTROKE_INLINE __m256i broadcast4(const void* p) {
  int32_t v;
  __builtin_memcpy(&v, p, sizeof v);
  return _mm256_set1_epi32(v);
}

// Shift 16-bit lanes left (positive) or right; callers mask away what crosses bytes.
TWOSTROKE_INLINE __m256i shift(__m256i v, int left) {
  return left >= 0 ? _mm256_slli_epi16(v, left) : _mm256_srli_epi16(v, -left);
}

// Ask for what lies 8 KB ahead, from memory to the L2 cache; once per tile is enough, as its first half meets the first
// rows.
TWOSTROKE_INLINE void prefetch(const uint8_t* p, int64_t bytes, int half, int64_t m) {
  if (half > 0 || m > 0) return;
  for (int64_t i = 0; i < bytes; i += line) _mm_prefetch(reinterpret_cast<const char*>(p + 8192 + i), _MM_HINT_T1);
}

// How many quads' byte products fit 16 bits.
constexpr int exact_quads(Type t) { return is_five(t) ? 4 : t == Type::q6_k ? 2 : 8; }

// Eight quads of unsigned codes (Q8_0: signed) of 8 rows; `body` points at the half's first byte.
template <Type T>
TWOSTROKE_INLINE void unpack(const uint8_t* body, __m256i w[8]) {
  const __m256i nibble = _mm256_set1_epi8(15);
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    if constexpr (T == Type::q8_0) {
      w[i] = load(body + i * line);
      continue;
    }
    const __m256i x = load(body + i % 4 * line);
    w[i] = _mm256_and_si256(i < 4 ? x : _mm256_srli_epi16(x, 4), nibble);
    if constexpr (is_five(T))
      w[i] = _mm256_or_si256(w[i], _mm256_and_si256(shift(load(body + nibble_bytes), 4 - i), _mm256_set1_epi8(16)));
    if constexpr (T == Type::q6_k)
      w[i] = _mm256_or_si256(
          w[i], _mm256_and_si256(shift(load(body + nibble_bytes + i / 4 * line), 4 - i % 4 * 2), _mm256_set1_epi8(48)));
  }
}

// 16-bit sums of pairs of products over `Quads` quads.
template <int Quads>
TWOSTROKE_INLINE __m256i pair_sums(const __m256i* w, const int8_t* a) {
  __m256i sum = _mm256_maddubs_epi16(w[0], broadcast4(a));
#pragma GCC unroll 8
  for (int i = 1; i < Quads; i++) sum = _mm256_add_epi16(sum, _mm256_maddubs_epi16(w[i], broadcast4(a + 4 * i)));
  return sum;
}

TWOSTROKE_INLINE __m256i add_products(__m256i sum, __m256i pairs, __m256i factors) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, factors));
}

template <Type T>
TWOSTROKE_INLINE __m256i dot32(const __m256i w[8], const int8_t* a, int32_t minus8) {
  constexpr int eighths = T == Type::q4_0 ? 1 : T == Type::q5_0 ? 2 : 0, exact = exact_quads(T);
  const __m256i ones = _mm256_set1_epi16(1);
  __m256i sum = _mm256_set1_epi32(eighths * minus8);
  if constexpr (T == Type::q8_0) {
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
      sum = add_products(
          sum, _mm256_maddubs_epi16(_mm256_abs_epi8(w[i]), _mm256_sign_epi8(broadcast4(a + 4 * i), w[i])), ones);
    return sum;
  }
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += exact) sum = add_products(sum, pair_sums<exact>(w + i, a + 4 * i), ones);
  return sum;
}

// Outputs of 8 rows from row `first` on, for activation row m.
TWOSTROKE_INLINE void store_row(const Span& s, int64_t first, int64_t m, __m256 v) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(s.rows - first)), lanes);
  float* out = s.out + m * s.out_stride + first;
  if (s.bias) v = _mm256_add_ps(v, _mm256_maskload_ps(s.bias + first, mask));
  if (s.add) v = _mm256_add_ps(_mm256_maskload_ps(out, mask), v);
  _mm256_maskstore_ps(out, mask, v);
}

template <Type T, int M>
void g32_half(const Span& s, const uint8_t* tile, int half, int64_t m, __m256 acc[M]) {
  constexpr int header_bytes = has_minimum(T) ? 64 : 32;
  const uint8_t *header = tile + half * 2 * half_rows, *body = tile + s.body + half * half_line;
  const int8_t* a = s.x.codes + m * s.x.pitch;
  for (int64_t g = 0, at = m * s.groups; g < s.groups;
       g++, at++, a += group_32, header += header_bytes, body += unit_bytes(T)) {
    __m256i w[8];
    prefetch(body - half * half_line, unit_bytes(T), half, m);
    unpack<T>(body, w);
    const __m256 d = load_halves(header);
#pragma GCC unroll 4
    for (int r = 0; r < M; r++) {
      const int64_t i = at + r * s.groups;
      const __m256 sum = _mm256_cvtepi32_ps(dot32<T>(w, a + r * s.x.pitch, s.x.minus8[i]));
      acc[r] = _mm256_fmadd_ps(sum, _mm256_mul_ps(d, _mm256_set1_ps(s.x.scale[i])), acc[r]);
      if constexpr (has_minimum(T))
        acc[r] = _mm256_fmadd_ps(load_halves(header + 32), _mm256_set1_ps(s.x.scaled_sum[i]), acc[r]);
    }
  }
}

// The scale block's bytes: S[8][16], then N[4][16][2].
void unpack_scale_block(const uint8_t* block, uint8_t* bytes) {
  const __m256i nibble = _mm256_set1_epi8(15), pair = _mm256_set1_epi8(48);
  for (int i = 0; i < 4; i++) {
    const int from = i / 2 * line + i % 2 * half_line;
    const __m256i low = load(block + from), high = load(block + 2 * line + i % 2 * half_line);
    const int bit = i / 2 * 4;  // the high pairs of S start at bit 0, those of N at bit 4
    const __m256i first = _mm256_or_si256(_mm256_and_si256(low, nibble), _mm256_and_si256(shift(high, 4 - bit), pair));
    const __m256i second = _mm256_or_si256(_mm256_and_si256(_mm256_srli_epi16(low, 4), nibble),
                                           _mm256_and_si256(shift(high, 2 - bit), pair));
    _mm256_store_si256(reinterpret_cast<__m256i*>(bytes + i / 2 * 128 + i % 2 * half_line), first);
    _mm256_store_si256(reinterpret_cast<__m256i*>(bytes + i / 2 * 128 + i % 2 * half_line + 64), second);
  }
}

TWOSTROKE_INLINE __m256i twice(__m256i v) { return _mm256_or_si256(v, _mm256_slli_epi32(v, 16)); }

template <Type T, int M>
void affine_half(const Span& s, const uint8_t* tile, int half, int64_t m, __m256 acc[M]) {
  constexpr int exact = exact_quads(T);
  const uint8_t *header = tile + half * 2 * half_rows, *body = tile + s.body;
  const int8_t* a = s.x.codes + m * s.x.pitch;
  for (int64_t g = 0, at = m * s.groups; g < s.groups; g++, at++, header += 64, body += scale_block_bytes) {
    alignas(32) uint8_t scales[256];
    prefetch(body + 8 * unit_bytes(T), scale_block_bytes, half, m);
    unpack_scale_block(body + 8 * unit_bytes(T), scales);
    const uint8_t *own = scales + half * half_rows, *minimums = scales + 128 + half * 2 * half_rows;
    __m256i total[M], low[M];
    for (int r = 0; r < M; r++) total[r] = low[r] = _mm256_setzero_si256();
    for (int j = 0; j < 8; j++, a += 32, body += unit_bytes(T)) {
      __m256i w[8];
      prefetch(body, unit_bytes(T), half, m);
      unpack<T>(body + half * half_line, w);
      const __m256i scale = twice(_mm256_cvtepu8_epi32(load128(own + j * tile_rows)));
#pragma GCC unroll 4
      for (int r = 0; r < M; r++)
#pragma GCC unroll 2
        for (int i = 0; i < 8; i += exact)
          total[r] = add_products(total[r], pair_sums<exact>(w + i, a + r * s.x.pitch + 4 * i), scale);
    }
    const __m256 d = load_halves(header), dmin = load_halves(header + 32);
    for (int r = 0; r < M; r++) {
      const int64_t i = at + r * s.groups;
      for (int j = 0; j < 4; j++)
        low[r] = add_products(low[r], _mm256_cvtepu8_epi16(load128(minimums + j * 32)),
                              broadcast4(s.x.sum32 + i * 8 + 2 * j));
      const __m256 t =
          _mm256_fmsub_ps(_mm256_cvtepi32_ps(total[r]), d, _mm256_mul_ps(_mm256_cvtepi32_ps(low[r]), dmin));
      acc[r] = _mm256_fmadd_ps(t, _mm256_set1_ps(s.x.scale[i]), acc[r]);
    }
  }
}

// The offset of the codes is taken off at the end: total - 32 * sum of scale * sum of activations.
template <Type T, int M>
void q6_k_half(const Span& s, const uint8_t* tile, int half, int64_t m, __m256 acc[M]) {
  const uint8_t *header = tile + half * 2 * half_rows, *body = tile + s.body;
  const int8_t* a = s.x.codes + m * s.x.pitch;
  for (int64_t g = 0, at = m * s.groups; g < s.groups; g++, at++, header += 32, body += 16 * tile_rows) {
    const uint8_t* scales = body + 8 * unit_bytes(T) + half * 2 * half_rows;
    prefetch(body + 8 * unit_bytes(T), 16 * tile_rows, half, m);
    __m256i total[M], offset[M];
    for (int r = 0; r < M; r++) total[r] = offset[r] = _mm256_setzero_si256();
    for (int j = 0; j < 8; j++, a += 32, body += unit_bytes(T)) {
      __m256i w[8];
      prefetch(body, unit_bytes(T), half, m);
      unpack<T>(body + half * half_line, w);
      const __m256i pair = _mm256_cvtepi8_epi16(load128(scales + 32 * j));
      const __m256i scale[2] = {twice(_mm256_and_si256(pair, _mm256_set1_epi32(0xffff))),
                                _mm256_blend_epi16(_mm256_srli_epi32(pair, 16), pair, 0xaa)};
#pragma GCC unroll 4
      for (int r = 0; r < M; r++) {
        offset[r] = add_products(offset[r], pair, broadcast4(s.x.sum16 + (at + r * s.groups) * 16 + 2 * j));
#pragma GCC unroll 4
        for (int i = 0; i < 8; i += 2)
          total[r] = add_products(total[r], pair_sums<2>(w + i, a + r * s.x.pitch + 4 * i), scale[i / 4]);
      }
    }
    const __m256 d = load_halves(header);
    for (int r = 0; r < M; r++) {
      const __m256i exact = _mm256_sub_epi32(total[r], _mm256_slli_epi32(offset[r], 5));
      acc[r] = _mm256_fmadd_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(exact), d),
                               _mm256_set1_ps(s.x.scale[at + r * s.groups]), acc[r]);
    }
  }
}

template <Type T>
TWOSTROKE_INLINE __m256 load_values(const uint8_t* p) {
  if constexpr (T == Type::f32) return _mm256_load_ps(reinterpret_cast<const float*>(p));
  if constexpr (T == Type::f16) return load_halves(p);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load128(p)), 16));
}

template <Type T, int M>
void float_half(const Span& s, const uint8_t* tile, int half, int64_t m, __m256 acc[M]) {
  constexpr int step = T == Type::f32 ? 64 : 32;
  const uint8_t* p = tile + half * step / 2;
  const float* x = s.x.floats + m * s.x.pitch;
  for (int64_t k = 0; k < s.groups; k++, p += step) {
    const __m256 w = load_values<T>(p);
#pragma GCC unroll 4
    for (int r = 0; r < M; r++) acc[r] = _mm256_fmadd_ps(w, _mm256_set1_ps(x[r * s.x.pitch + k]), acc[r]);
  }
}

template <Type T, int M>
void tile(const Span& s, int64_t n, int64_t m) {
  const uint8_t* p = s.tiles + n * s.stride;
  for (int half = 0; half < 2 && n * tile_rows + half * half_rows < s.rows; half++) {
    __m256 acc[M];
    for (auto& v : acc) v = _mm256_setzero_ps();
    prefetch(p, s.body, half, m);  // what opens the next tile lies between two tiles' codes
    if constexpr (is_float(T))
      float_half<T, M>(s, p, half, m, acc);
    else if constexpr (is_affine(T))
      affine_half<T, M>(s, p, half, m, acc);
    else if constexpr (T == Type::q6_k)
      q6_k_half<T, M>(s, p, half, m, acc);
    else
      g32_half<T, M>(s, p, half, m, acc);
    for (int r = 0; r < M; r++) store_row(s, n * tile_rows + half * half_rows, m + r, acc[r]);
  }
}

struct Products {
  // All rows of one tile while it is in cache.
  template <Type T>
  static void run(const Span& s) {
    for (int64_t n = s.first; n < s.last; n++)
      in_fours(s.M, [&](auto rows, int64_t m) { tile<T, decltype(rows)::value>(s, n, m); });
  }
};

}  // namespace

const GemmKernels gemm_avx2 = {multiply_by_type<Products>, quantize_row_g32, quantize_row_g256};

}  // namespace twostroke
