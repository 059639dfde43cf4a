// Sixteen virtual lanes, the same on every instruction set.
//
// Each function is one IEEE operation (or one exact conversion) per lane, so code written on these types gives the same
// bits whether a lane block is one AVX-512 register, two of AVX2, four of NEON or a plain array.  Included only by the
// files that are compiled once per path; everything lives in a namespace of that path so that no code leaks between
// them.
#pragma once
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#define TWOSTROKE_PATH path_avx512
#elif defined(__AVX2__)
#define TWOSTROKE_PATH path_avx2
#elif defined(TWOSTROKE_NEON)  // asked for by its file: every 64-bit Arm compiler has it on
#define TWOSTROKE_PATH path_neon
#else
#define TWOSTROKE_PATH path_portable
#endif

#if defined(__AVX2__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"  // GCC's own headers start from undefined registers
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#elif defined(TWOSTROKE_NEON)
#include <arm_neon.h>
#endif

#define INLINE static inline __attribute__((always_inline))

namespace twostroke {
namespace TWOSTROKE_PATH {

constexpr int lanes = 16;

#if defined(__AVX512F__)

struct F { __m512 v; };    // floats
struct I { __m512i v; };   // 32-bit integers, wrapping
struct M { __mmask16 v; };  // truths

INLINE F load(const float* p) { return {_mm512_loadu_ps(p)}; }
INLINE void store(float* p, F a) { _mm512_storeu_ps(p, a.v); }
INLINE F all(float x) { return {_mm512_set1_ps(x)}; }
INLINE F add(F a, F b) { return {_mm512_add_ps(a.v, b.v)}; }
INLINE F sub(F a, F b) { return {_mm512_sub_ps(a.v, b.v)}; }
INLINE F mul(F a, F b) { return {_mm512_mul_ps(a.v, b.v)}; }
INLINE F div(F a, F b) { return {_mm512_div_ps(a.v, b.v)}; }
INLINE F fma(F a, F b, F c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
INLINE F max(F a, F b) { return {_mm512_max_ps(a.v, b.v)}; }
INLINE M less(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
INLINE M at_most(F a, F b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
INLINE F select(M m, F a, F b) { return {_mm512_mask_blend_ps(m.v, b.v, a.v)}; }
INLINE M first(int n) {  // none of them if n is negative
  return {static_cast<__mmask16>(n >= lanes ? 0xffffu : n <= 0 ? 0u : (1u << n) - 1u)};
}
INLINE bool any(M m) { return m.v != 0; }
INLINE I load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
INLINE void store(int32_t* p, I a) { _mm512_storeu_si512(p, a.v); }
INLINE I all(int32_t x) { return {_mm512_set1_epi32(x)}; }
INLINE I add(I a, I b) { return {_mm512_add_epi32(a.v, b.v)}; }
INLINE I sub(I a, I b) { return {_mm512_sub_epi32(a.v, b.v)}; }
INLINE I bit_and(I a, I b) { return {_mm512_and_si512(a.v, b.v)}; }
INLINE I bit_or(I a, I b) { return {_mm512_or_si512(a.v, b.v)}; }
INLINE I bit_xor(I a, I b) { return {_mm512_xor_si512(a.v, b.v)}; }
template <int n> INLINE I shift_left(I a) { return {_mm512_slli_epi32(a.v, n)}; }
template <int n> INLINE I shift_right(I a) { return {_mm512_srli_epi32(a.v, n)}; }
INLINE F to_float(I a) { return {_mm512_cvtepi32_ps(a.v)}; }
INLINE I bits(F a) { return {_mm512_castps_si512(a.v)}; }
INLINE F from_bits(I a) { return {_mm512_castsi512_ps(a.v)}; }
INLINE void wide_product(I a, I b, I& high, I& low) {
  const __m512i even = _mm512_mul_epu32(a.v, b.v);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), _mm512_srli_epi64(b.v, 32));
  high.v = _mm512_mask_blend_epi32(0xaaaa, _mm512_srli_epi64(even, 32), odd);
  low.v = _mm512_mask_blend_epi32(0xaaaa, even, _mm512_slli_epi64(odd, 32));
}
INLINE void store_masses(int64_t* p, F a) {  // trunc(a * 2^40) of a in [0, 1]
  const __m512 scaled = _mm512_mul_ps(a.v, _mm512_set1_ps(0x1p40f));
  _mm512_storeu_si512(p, _mm512_cvttps_epi64(_mm512_castps512_ps256(scaled)));
  _mm512_storeu_si512(p + 8, _mm512_cvttps_epi64(_mm512_extractf32x8_ps(scaled, 1)));
}

#elif defined(__AVX2__)

struct F { __m256 a, b; };
struct I { __m256i a, b; };
struct M { __m256 a, b; };

INLINE F load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
INLINE void store(float* p, F x) { _mm256_storeu_ps(p, x.a), _mm256_storeu_ps(p + 8, x.b); }
INLINE F all(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
INLINE F add(F x, F y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
INLINE F sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
INLINE F mul(F x, F y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
INLINE F div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
INLINE F fma(F x, F y, F z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
INLINE F max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
INLINE M less(F x, F y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_LT_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LT_OQ)}; }
INLINE M at_most(F x, F y) { return {_mm256_cmp_ps(x.a, y.a, _CMP_LE_OQ), _mm256_cmp_ps(x.b, y.b, _CMP_LE_OQ)}; }
INLINE F select(M m, F x, F y) { return {_mm256_blendv_ps(y.a, x.a, m.a), _mm256_blendv_ps(y.b, x.b, m.b)}; }
INLINE M first(int n) {
  const __m256i low = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), high = _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15);
  const __m256i bound = _mm256_set1_epi32(n);
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(bound, low)), _mm256_castsi256_ps(_mm256_cmpgt_epi32(bound, high))};
}
INLINE bool any(M m) { return _mm256_movemask_ps(m.a) != 0 || _mm256_movemask_ps(m.b) != 0; }
INLINE I load(const int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
INLINE void store(int32_t* p, I x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.a), _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), x.b);
}
INLINE I all(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
INLINE I add(I x, I y) { return {_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)}; }
INLINE I sub(I x, I y) { return {_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)}; }
INLINE I bit_and(I x, I y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
INLINE I bit_or(I x, I y) { return {_mm256_or_si256(x.a, y.a), _mm256_or_si256(x.b, y.b)}; }
INLINE I bit_xor(I x, I y) { return {_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)}; }
template <int n> INLINE I shift_left(I x) { return {_mm256_slli_epi32(x.a, n), _mm256_slli_epi32(x.b, n)}; }
template <int n> INLINE I shift_right(I x) { return {_mm256_srli_epi32(x.a, n), _mm256_srli_epi32(x.b, n)}; }
INLINE F to_float(I x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
INLINE I bits(F x) { return {_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)}; }
INLINE F from_bits(I x) { return {_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)}; }
INLINE void wide_product8(__m256i a, __m256i b, __m256i& high, __m256i& low) {
  const __m256i even = _mm256_mul_epu32(a, b);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a, 32), _mm256_srli_epi64(b, 32));
  high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
  low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}
INLINE void wide_product(I x, I y, I& high, I& low) {
  wide_product8(x.a, y.a, high.a, low.a);
  wide_product8(x.b, y.b, high.b, low.b);
}

#elif defined(TWOSTROKE_NEON)

struct F { float32x4_t a, b, c, d; };
struct I { uint32x4_t a, b, c, d; };
struct M { uint32x4_t a, b, c, d; };

#define EACH1(f, x) {f(x.a), f(x.b), f(x.c), f(x.d)}
#define EACH2(f, x, y) {f(x.a, y.a), f(x.b, y.b), f(x.c, y.c), f(x.d, y.d)}
#define EACH3(f, x, y, z) {f(x.a, y.a, z.a), f(x.b, y.b, z.b), f(x.c, y.c, z.c), f(x.d, y.d, z.d)}

INLINE F load(const float* p) { return {vld1q_f32(p), vld1q_f32(p + 4), vld1q_f32(p + 8), vld1q_f32(p + 12)}; }
INLINE void store(float* p, F x) {
  vst1q_f32(p, x.a), vst1q_f32(p + 4, x.b), vst1q_f32(p + 8, x.c), vst1q_f32(p + 12, x.d);
}
INLINE F all(float x) { return {vdupq_n_f32(x), vdupq_n_f32(x), vdupq_n_f32(x), vdupq_n_f32(x)}; }
INLINE F add(F x, F y) { return EACH2(vaddq_f32, x, y); }
INLINE F sub(F x, F y) { return EACH2(vsubq_f32, x, y); }
INLINE F mul(F x, F y) { return EACH2(vmulq_f32, x, y); }
INLINE F div(F x, F y) { return EACH2(vdivq_f32, x, y); }
INLINE F fma(F x, F y, F z) { return EACH3(vfmaq_f32, z, x, y); }
INLINE M less(F x, F y) { return EACH2(vcltq_f32, x, y); }
INLINE M at_most(F x, F y) { return EACH2(vcleq_f32, x, y); }
INLINE F select(M m, F x, F y) { return EACH3(vbslq_f32, m, x, y); }
INLINE F max(F x, F y) { return select(less(y, x), x, y); }  // not vmaxq: a NaN on the left gives y, as on x86
INLINE I load(const int32_t* p) {
  const auto* u = reinterpret_cast<const uint32_t*>(p);
  return {vld1q_u32(u), vld1q_u32(u + 4), vld1q_u32(u + 8), vld1q_u32(u + 12)};
}
INLINE void store(int32_t* p, I x) {
  auto* u = reinterpret_cast<uint32_t*>(p);
  vst1q_u32(u, x.a), vst1q_u32(u + 4, x.b), vst1q_u32(u + 8, x.c), vst1q_u32(u + 12, x.d);
}
INLINE I all(int32_t x) {
  const uint32x4_t v = vdupq_n_u32(static_cast<uint32_t>(x));
  return {v, v, v, v};
}
INLINE M first(int n) {
  const int32_t numbers[lanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const I lane = load(numbers), bound = all(n < 0 ? 0 : n);
  return EACH2(vcltq_u32, lane, bound);
}
INLINE bool any(M m) { return vmaxvq_u32(vorrq_u32(vorrq_u32(m.a, m.b), vorrq_u32(m.c, m.d))) != 0; }
INLINE I add(I x, I y) { return EACH2(vaddq_u32, x, y); }
INLINE I sub(I x, I y) { return EACH2(vsubq_u32, x, y); }
INLINE I bit_and(I x, I y) { return EACH2(vandq_u32, x, y); }
INLINE I bit_or(I x, I y) { return EACH2(vorrq_u32, x, y); }
INLINE I bit_xor(I x, I y) { return EACH2(veorq_u32, x, y); }
template <int n> INLINE I shift_left(I x) {
  return {vshlq_n_u32(x.a, n), vshlq_n_u32(x.b, n), vshlq_n_u32(x.c, n), vshlq_n_u32(x.d, n)};
}
template <int n> INLINE I shift_right(I x) {
  return {vshrq_n_u32(x.a, n), vshrq_n_u32(x.b, n), vshrq_n_u32(x.c, n), vshrq_n_u32(x.d, n)};
}
INLINE float32x4_t to_float4(uint32x4_t x) { return vcvtq_f32_s32(vreinterpretq_s32_u32(x)); }
INLINE F to_float(I x) { return EACH1(to_float4, x); }
INLINE I bits(F x) { return EACH1(vreinterpretq_u32_f32, x); }
INLINE F from_bits(I x) { return EACH1(vreinterpretq_f32_u32, x); }
INLINE void wide_product4(uint32x4_t a, uint32x4_t b, uint32x4_t& high, uint32x4_t& low) {
  const uint32x4_t front = vreinterpretq_u32_u64(vmull_u32(vget_low_u32(a), vget_low_u32(b)));
  const uint32x4_t back = vreinterpretq_u32_u64(vmull_high_u32(a, b));
  low = vuzp1q_u32(front, back);
  high = vuzp2q_u32(front, back);
}
INLINE void wide_product(I x, I y, I& high, I& low) {
  wide_product4(x.a, y.a, high.a, low.a);
  wide_product4(x.b, y.b, high.b, low.b);
  wide_product4(x.c, y.c, high.c, low.c);
  wide_product4(x.d, y.d, high.d, low.d);
}

#undef EACH1
#undef EACH2
#undef EACH3

#else

struct F { float v[16]; };
struct I { uint32_t v[16]; };
struct M { bool v[16]; };

#define EACH(type, expression)               \
  type r;                                    \
  for (int i = 0; i < lanes; i++) r.v[i] = (expression); \
  return r

INLINE F load(const float* p) { EACH(F, p[i]); }
INLINE void store(float* p, F a) { std::memcpy(p, a.v, sizeof a.v); }
INLINE F all(float x) { EACH(F, x); }
INLINE F add(F a, F b) { EACH(F, a.v[i] + b.v[i]); }
INLINE F sub(F a, F b) { EACH(F, a.v[i] - b.v[i]); }
INLINE F mul(F a, F b) { EACH(F, a.v[i] * b.v[i]); }
INLINE F div(F a, F b) { EACH(F, a.v[i] / b.v[i]); }
INLINE F fma(F a, F b, F c) { EACH(F, __builtin_fmaf(a.v[i], b.v[i], c.v[i])); }
INLINE F max(F a, F b) { EACH(F, a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
INLINE M less(F a, F b) { EACH(M, a.v[i] < b.v[i]); }
INLINE M at_most(F a, F b) { EACH(M, a.v[i] <= b.v[i]); }
INLINE F select(M m, F a, F b) { EACH(F, m.v[i] ? a.v[i] : b.v[i]); }
INLINE M first(int n) { EACH(M, i < n); }
INLINE bool any(M m) {
  bool r = false;
  for (int i = 0; i < lanes; i++) r |= m.v[i];
  return r;
}
INLINE I load(const int32_t* p) { EACH(I, static_cast<uint32_t>(p[i])); }
INLINE void store(int32_t* p, I a) { std::memcpy(p, a.v, sizeof a.v); }
INLINE I all(int32_t x) { EACH(I, static_cast<uint32_t>(x)); }
INLINE I add(I a, I b) { EACH(I, a.v[i] + b.v[i]); }
INLINE I sub(I a, I b) { EACH(I, a.v[i] - b.v[i]); }
INLINE I bit_and(I a, I b) { EACH(I, a.v[i] & b.v[i]); }
INLINE I bit_or(I a, I b) { EACH(I, a.v[i] | b.v[i]); }
INLINE I bit_xor(I a, I b) { EACH(I, a.v[i] ^ b.v[i]); }
template <int n> INLINE I shift_left(I a) { EACH(I, a.v[i] << n); }
template <int n> INLINE I shift_right(I a) { EACH(I, a.v[i] >> n); }
INLINE F to_float(I a) { EACH(F, static_cast<float>(static_cast<int32_t>(a.v[i]))); }
INLINE I bits(F a) {
  I r;
  std::memcpy(r.v, a.v, sizeof r.v);
  return r;
}
INLINE F from_bits(I a) {
  F r;
  std::memcpy(r.v, a.v, sizeof r.v);
  return r;
}
INLINE void wide_product(I a, I b, I& high, I& low) {
  for (int i = 0; i < lanes; i++) {
    const uint64_t product = static_cast<uint64_t>(a.v[i]) * b.v[i];
    high.v[i] = static_cast<uint32_t>(product >> 32);
    low.v[i] = static_cast<uint32_t>(product);
  }
}

#undef EACH
#endif

#if !defined(__AVX512F__)
INLINE void store_masses(int64_t* p, F a) {  // trunc(a * 2^40) of a in [0, 1]
  float v[lanes];
  store(v, a);
  for (int i = 0; i < lanes; i++) p[i] = static_cast<int64_t>(v[i] * 0x1p40f);
}
#endif

INLINE F magnitude(F a) { return from_bits(bit_and(bits(a), all(int32_t{0x7fffffff}))); }

// Part-filled blocks: the first n lanes of memory, zero elsewhere.
INLINE F load_some(const float* p, int n) {
  float block[lanes] = {};
  std::memcpy(block, p, static_cast<size_t>(n) * sizeof(float));
  return load(block);
}
INLINE void store_some(float* p, F a, int n) {
  float block[lanes];
  store(block, a);
  std::memcpy(p, block, static_cast<size_t>(n) * sizeof(float));
}

// Reductions by one fixed tree: halves onto halves.
INLINE float tree_sum(F a) {
  float v[lanes];
  store(v, a);
#pragma GCC unroll 4
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) v[i] = v[i] + v[i + half];
  return v[0];
}
INLINE float tree_max(F a) {
  float v[lanes];
  store(v, a);
#pragma GCC unroll 4
  for (int half = lanes / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) v[i] = v[i] > v[i + half] ? v[i] : v[i + half];
  return v[0];
}

INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }  // to the L2 cache

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
