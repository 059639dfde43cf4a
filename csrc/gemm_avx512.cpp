// The products with AVX-512 and its byte dot products (VNNI): one tile of 16 rows against up to 8 activation rows.
//
// Sub-block scales of the K types are applied in integers: a dot product over 16 inputs of 4 bits (8 of 5 or 6 bits)
// fits 16 bits, so one pairwise 16-bit product (whose upper factor is zero) scales and accumulates it.
#include "quantize_row.h"
#include "simd512.h"

namespace twostroke {
namespace {

// dot + sum of codes times activations, over `Quads` quads.
template <int Quads>
TWOSTROKE_INLINE __m512i dot(__m512i sum, const __m512i* w, const int8_t* a) {
#pragma GCC unroll 8
  for (int i = 0; i < Quads; i++) sum = _mm512_dpbusd_epi32(sum, w[i], broadcast4(a + 4 * i));
  return sum;
}

template <Type T>
TWOSTROKE_INLINE __m512i offset_start(int32_t minus8) {
  constexpr int eighths = T == Type::q4_0 ? 1 : T == Type::q5_0 ? 2 : T == Type::q8_0 ? 16 : 0;
  return eighths ? _mm512_set1_epi32(eighths * minus8) : _mm512_setzero_si512();
}

template <Type T, int M>
void g32_tile(const Span& s, int64_t n, int64_t m) {
  constexpr int header_bytes = has_minimum(T) ? 64 : 32;
  const uint8_t *header = s.tiles + n * s.stride, *body = header + s.body;
  const int8_t* a = s.x.codes + m * s.x.pitch;
  int64_t at = m * s.groups;
  __m512 acc[M];
  for (auto& v : acc) v = _mm512_setzero_ps();
  for (int64_t g = 0; g < s.groups; g++, at++, a += group_32, header += header_bytes, body += unit_bytes(T)) {
    __m512i w[8];
    prefetch<unit_bytes(T)>(body);
    unpack<T>(body, w);
    if constexpr (T == Type::q8_0)
      for (auto& v : w) v = _mm512_xor_si512(v, _mm512_set1_epi8(-128));
    const __m512 d = load_halves(header);
#pragma GCC unroll 8
    for (int r = 0; r < M; r++) {
      const int64_t i = at + r * s.groups;
      const __m512i sum = dot<8>(offset_start<T>(s.x.minus8[i]), w, a + r * s.x.pitch);
      acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum), _mm512_mul_ps(d, _mm512_set1_ps(s.x.scale[i])), acc[r]);
      if constexpr (has_minimum(T))
        acc[r] = _mm512_fmadd_ps(load_halves(header + 32), _mm512_set1_ps(s.x.scaled_sum[i]), acc[r]);
    }
  }
  for (int r = 0; r < M; r++) store_row(s, n, m + r, acc[r]);
}

template <Type T, int M>
void affine_tile(const Span& s, int64_t n, int64_t m) {
  constexpr int exact = T == Type::q4_k ? 4 : 2;  // quads whose dot product fits 16 bits
  const uint8_t *header = s.tiles + n * s.stride, *body = header + s.body;
  const int8_t* a = s.x.codes + m * s.x.pitch;
  int64_t at = m * s.groups;
  __m512 acc[M];
  for (auto& v : acc) v = _mm512_setzero_ps();
  for (int64_t g = 0; g < s.groups; g++, at++, header += 64, body += scale_block_bytes) {
    alignas(64) uint8_t scales[8][tile_rows];
    const SixBits six = unpack_scale_block(body + 8 * unit_bytes(T));
    _mm512_store_si512(scales[0], six.scales[0]);
    _mm512_store_si512(scales[4], six.scales[1]);
    prefetch<scale_block_bytes>(body + 8 * unit_bytes(T));
    __m512i total[M];
    for (auto& v : total) v = _mm512_setzero_si512();
    for (int j = 0; j < 8; j++, a += 32, body += unit_bytes(T)) {
      __m512i w[8];
      prefetch<unit_bytes(T)>(body);
      unpack<T>(body, w);
      const __m512i scale = _mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(scales[j])));
#pragma GCC unroll 8
      for (int r = 0; r < M; r++)
#pragma GCC unroll 4
        for (int i = 0; i < 8; i += exact)
          total[r] = _mm512_dpwssd_epi32(total[r], dot<exact>(_mm512_setzero_si512(), w + i, a + r * s.x.pitch + 4 * i),
                                         scale);
    }
    __m512i pairs[4];
    widen_minimums(six, pairs);
    const __m512 d = load_halves(header), dmin = load_halves(header + 32);
#pragma GCC unroll 8
    for (int r = 0; r < M; r++) {
      const int64_t i = at + r * s.groups;
      acc[r] = add_affine(acc[r], total[r], dot_minimums(pairs, s.x.sum32 + i * 8), d, dmin, s.x.scale[i]);
    }
  }
  for (int r = 0; r < M; r++) store_row(s, n, m + r, acc[r]);
}

// Codes minus 32 keep a dot product over 8 inputs in 16 bits; the difference comes in as the sum's start.
template <Type T, int M>
void q6_k_tile(const Span& s, int64_t n, int64_t m) {
  const uint8_t *header = s.tiles + n * s.stride, *body = header + s.body;
  const int8_t* a = s.x.codes + m * s.x.pitch;
  int64_t at = m * s.groups;
  __m512 acc[M];
  for (auto& v : acc) v = _mm512_setzero_ps();
  for (int64_t g = 0; g < s.groups; g++, at++, header += 32, body += 16 * tile_rows) {
    const uint8_t* scales = body + 8 * unit_bytes(T);
    __m512i total[M];
    for (auto& v : total) v = _mm512_setzero_si512();
    prefetch<16 * tile_rows>(scales);
    for (int j = 0; j < 8; j++, a += 32, body += unit_bytes(T)) {
      __m512i w[8];
      prefetch<unit_bytes(T)>(body);
      unpack<T>(body, w);
      const __m512i pair = _mm512_cvtepi8_epi16(load256(scales + 32 * j));
      const __m512i scale[2] = {_mm512_and_si512(pair, _mm512_set1_epi32(0xffff)), _mm512_srli_epi32(pair, 16)};
#pragma GCC unroll 8
      for (int r = 0; r < M; r++) {
        const int32_t* start = s.x.minus32 + (at + r * s.groups) * 32 + 4 * j;
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
          total[r] = _mm512_dpwssd_epi32(total[r], dot<2>(broadcast4(start + i), w + 2 * i, a + r * s.x.pitch + 8 * i),
                                         scale[i / 2]);
      }
    }
    const __m512 d = load_halves(header);
#pragma GCC unroll 8
    for (int r = 0; r < M; r++) acc[r] = add_q6_k(acc[r], total[r], d, s.x.scale[at + r * s.groups]);
  }
  for (int r = 0; r < M; r++) store_row(s, n, m + r, acc[r]);
}

template <Type T>
TWOSTROKE_INLINE __m512 load_values(const uint8_t* p) {
  if constexpr (T == Type::f32) return _mm512_load_ps(p);
  if constexpr (T == Type::f16) return load_halves(p);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load256(p)), 16));
}

template <Type T, int M>
void float_tile(const Span& s, int64_t n, int64_t m) {
  constexpr int step = T == Type::f32 ? 64 : 32;
  const uint8_t* p = s.tiles + n * s.stride;
  const float* x = s.x.floats + m * s.x.pitch;
  __m512 acc[M];
  for (auto& v : acc) v = _mm512_setzero_ps();
  for (int64_t k = 0; k < s.groups; k++, p += step) {
    prefetch<step>(p);
    const __m512 w = load_values<T>(p);
#pragma GCC unroll 8
    for (int r = 0; r < M; r++) acc[r] = _mm512_fmadd_ps(w, _mm512_set1_ps(x[r * s.x.pitch + k]), acc[r]);
  }
  for (int r = 0; r < M; r++) store_row(s, n, m + r, acc[r]);
}

template <Type T, int M>
TWOSTROKE_INLINE void tile(const Span& s, int64_t n, int64_t m) {
  if constexpr (T == Type::f32 || T == Type::f16 || T == Type::bf16)
    float_tile<T, M>(s, n, m);
  else if constexpr (T == Type::q4_k || T == Type::q5_k)
    affine_tile<T, M>(s, n, m);
  else if constexpr (T == Type::q6_k)
    q6_k_tile<T, M>(s, n, m);
  else
    g32_tile<T, M>(s, n, m);
}

// All rows of one tile while it is in cache: fours, then what is left.
template <Type T>
void multiply_type(const Span& s) {
  for (int64_t n = s.first; n < s.last; n++) {
    int64_t m = 0;
    for (; m + 4 <= s.M; m += 4) tile<T, 4>(s, n, m);
    if (s.M - m == 3) tile<T, 3>(s, n, m);
    if (s.M - m == 2) tile<T, 2>(s, n, m);
    if (s.M - m == 1) tile<T, 1>(s, n, m);
  }
}

void multiply(const Span& s) {
  static void (*const by_type[])(const Span&) = {
      multiply_type<Type::f32>,  multiply_type<Type::f16>,  multiply_type<Type::bf16>, multiply_type<Type::q4_0>,
      multiply_type<Type::q4_1>, multiply_type<Type::q5_0>, multiply_type<Type::q5_1>, multiply_type<Type::q8_0>,
      multiply_type<Type::q4_k>, multiply_type<Type::q5_k>, multiply_type<Type::q6_k>};
  by_type[static_cast<int>(s.type)](s);
}

}  // namespace

const GemmKernels gemm_avx512 = {multiply, quantize_row_g32, quantize_row_g256};

}  // namespace twostroke
