// The products with AVX-512 and its byte dot products (VNNI).
//
// 256 inputs of a tile of 16 rows meet all activation rows before the next 256 are read, up to 8 rows at once: so many
// sums fill the registers.  Codes are unpacked anew for each 8 rows, on units that the products leave idle.  What comes
// next from memory is fetched evenly between the products of all rows, or reading and multiplying would take turns.
//
// Sub-block scales of the K types are applied in integers: one 32-bit product per sub-block, row and output.
#include "by_type.h"
#include "quantize_row.h"
#include "simd512.h"

namespace twostroke {
namespace {

constexpr int block_rows = 8;                // activation rows that are multiplied at once
constexpr int pass_rows = 256;               // rows whose outputs are kept while a tile is read
constexpr int64_t cached_bytes = 512 << 10;  // of activations, so that they stay in the L2 cache from tile to tile

constexpr bool is_super(Type t) { return is_affine(t) || t == Type::q6_k; }

constexpr int part_units = 8;  // units of 32 inputs in the 256 that meet all rows

// Sub-block scales, as integers, and float scales of a super-block.
struct Scales {
  alignas(64) int32_t parts[2 * part_units][tile_rows];  // of 32 inputs each (Q6_K: 16)
  __m512i minimums[4];                                   // Q4_K, Q5_K
  __m512 d, dmin;
};

// Asks for what lies ahead of a part of the weights, `step` cache lines at a time.
struct Ahead {
  const uint8_t *at, *end;
  int step;
  TWOSTROKE_INLINE void fetch() {
    for (int i = 0; i < step && at < end; i++, at += line) prefetch<line>(at);
  }
};

TWOSTROKE_INLINE void widen_scales(__m512i bytes, int32_t (*scales)[tile_rows]) {
  _mm512_store_si512(scales[0], _mm512_cvtepu8_epi32(_mm512_castsi512_si128(bytes)));
  _mm512_store_si512(scales[1], _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(bytes, 1)));
  _mm512_store_si512(scales[2], _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(bytes, 2)));
  _mm512_store_si512(scales[3], _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(bytes, 3)));
}

template <Type T>
TWOSTROKE_INLINE void unpack_scales(const uint8_t* header, const uint8_t* block, Scales& s) {
  s.d = load_halves(header);
  if constexpr (is_affine(T)) {
    const SixBits six = unpack_scale_block(block);
    widen_scales(six.scales[0], s.parts);
    widen_scales(six.scales[1], s.parts + 4);
    widen_minimums(six, s.minimums);
    s.dmin = load_halves(header + 32);
  } else {
    for (int j = 0; j < part_units; j++) {
      const __m512i pair = _mm512_cvtepi8_epi16(load256(block + 32 * j));
      _mm512_store_si512(s.parts[2 * j], _mm512_srai_epi32(_mm512_slli_epi32(pair, 16), 16));
      _mm512_store_si512(s.parts[2 * j + 1], _mm512_srai_epi32(pair, 16));
    }
  }
}

// sum += w times the four activations at `a`, in every lane.  In assembly, for compilers load the broadcast on its own:
// twice the instructions and registers.
TWOSTROKE_INLINE void add_products(__m512i& sum, __m512i w, const int8_t* a) {
  using Four = int32_t __attribute__((may_alias, aligned(1)));
  __asm__("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(sum) : "v"(w), "m"(*reinterpret_cast<const Four*>(a)));
}

// sums[r] += codes times activations of row r, over some quads of 32 inputs.
template <Type T, int R>
TWOSTROKE_INLINE void add_dots(__m512i sums[R], const uint8_t* body, int first, int quads, const int8_t* a,
                               int64_t pitch) {
#pragma GCC unroll 8
  for (int i = first; i < first + quads; i++) {
    const __m512i codes = quad<T>(body, i);
    const __m512i w = T == Type::q8_0 ? _mm512_xor_si512(codes, _mm512_set1_epi8(-128)) : codes;
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) add_products(sums[r], w, a + r * pitch + 4 * i);
  }
}

template <Type T>
TWOSTROKE_INLINE __m512i offset_start(int32_t minus8) {
  constexpr int eighths = T == Type::q4_0 ? 1 : T == Type::q5_0 ? 2 : T == Type::q8_0 ? 16 : 0;
  return eighths ? _mm512_set1_epi32(eighths * minus8) : _mm512_setzero_si512();
}

// A part of 256 inputs (or fewer, of the types with groups of 32) of one tile.
struct Part {
  const uint8_t *header, *body;
  int64_t g;  // its first group
  int units;  // of 32 inputs
};

template <Type T, int R>
TWOSTROKE_INLINE void meet_g32(const Span& s, const Part& p, int64_t m, __m512 acc[R], Ahead& next) {
  constexpr int header_bytes = has_minimum(T) ? 64 : 32;
  const int8_t* a = s.x.codes + m * s.x.pitch + p.g * group_32;
  for (int j = 0; j < p.units; j++, a += group_32) {
    const uint8_t* header = p.header + j * header_bytes;
    const int64_t at = m * s.groups + p.g + j;
    __m512i sums[R];
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) sums[r] = offset_start<T>(s.x.minus8[at + r * s.groups]);
    add_dots<T, R>(sums, p.body + j * unit_bytes(T), 0, 8, a, s.x.pitch);
    next.fetch();
    const __m512 d = load_halves(header);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      const int64_t i = at + r * s.groups;
      const __m512 scale = _mm512_mul_ps(d, _mm512_set1_ps(s.x.scale[i]));
      acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sums[r]), scale, acc[r]);
      if constexpr (has_minimum(T))
        acc[r] = _mm512_fmadd_ps(load_halves(header + 32), _mm512_set1_ps(s.x.scaled_sum[i]), acc[r]);
    }
  }
}

// total[r] += scale times sum, for one sub-block.
template <int R>
TWOSTROKE_INLINE void add_scaled(__m512i total[R], const __m512i sums[R], const int32_t* scale) {
  const __m512i v = load512(scale);
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) total[r] = _mm512_add_epi32(total[r], _mm512_mullo_epi32(sums[r], v));
}

// Q6_K's codes are 32 too large, which the sums' starts make up for.
template <Type T, int R>
TWOSTROKE_INLINE void meet_super(const Span& s, const Part& p, const Scales& scales, int64_t m, __m512 acc[R],
                                 Ahead& next) {
  constexpr int halves = is_affine(T) ? 1 : 2, quads = 8 / halves;  // sub-blocks in 32 inputs
  const int8_t* a = s.x.codes + m * s.x.pitch + p.g * group_256;
  const int64_t at = m * s.groups + p.g;
  const auto start = [&](int r, int i) { return is_affine(T) ? 0 : s.x.minus32[(at + r * s.groups) * 16 + i]; };
  __m512i total[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) total[r] = _mm512_setzero_si512();
  for (int j = 0; j < part_units; j++, a += group_32) {
#pragma GCC unroll 2
    for (int h = 0; h < halves; h++) {
      __m512i sums[R];
#pragma GCC unroll 8
      for (int r = 0; r < R; r++) sums[r] = _mm512_set1_epi32(start(r, 2 * j + h));
      add_dots<T, R>(sums, p.body + j * unit_bytes(T), h * quads, quads, a, s.x.pitch);
      add_scaled<R>(total, sums, scales.parts[j * halves + h]);
    }
    next.fetch();
  }
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) {
    const int64_t i = at + r * s.groups;
    if constexpr (is_affine(T))
      acc[r] = add_affine(acc[r], total[r], dot_minimums(scales.minimums, s.x.sum32 + i * 8), scales.d, scales.dmin,
                          s.x.scale[i]);
    else
      acc[r] = add_q6_k(acc[r], total[r], scales.d, s.x.scale[i]);
  }
}

using Outputs = float[pass_rows][tile_rows];

template <Type T, int R>
void meet(const Span& s, const Part& p, const Scales& scales, int64_t m, float (*out)[tile_rows], Ahead& next) {
  __m512 acc[R];
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) acc[r] = p.g == 0 ? _mm512_setzero_ps() : _mm512_load_ps(out[r]);
  if constexpr (is_super(T))
    meet_super<T, R>(s, p, scales, m, acc, next);
  else
    meet_g32<T, R>(s, p, m, acc, next);
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) _mm512_store_ps(out[r], acc[r]);
}

// Rows first .. first + rows in blocks as even as can be.
template <Type T>
void meet_rows(const Span& s, const Part& p, const Scales& scales, int64_t first, int64_t rows, Outputs& out,
               Ahead next) {
  static constexpr decltype(&meet<T, 1>) by_rows[] = {meet<T, 1>, meet<T, 2>, meet<T, 3>, meet<T, 4>,
                                                      meet<T, 5>, meet<T, 6>, meet<T, 7>, meet<T, 8>};
  for (int64_t blocks = (rows + block_rows - 1) / block_rows, m = 0; blocks > 0; blocks--) {
    const int64_t count = (rows - m + blocks - 1) / blocks;
    by_rows[count - 1](s, p, scales, first + m, out + m, next);
    m += count;
  }
}

template <Type T>
void multiply_tile(const Span& s, int64_t n, int64_t first, int64_t rows) {
  constexpr int step = is_super(T) ? 1 : part_units;  // groups in a part
  constexpr int scale_bytes = is_affine(T) ? scale_block_bytes : T == Type::q6_k ? 16 * tile_rows : 0;
  constexpr int group_bytes = is_super(T) ? part_units * unit_bytes(T) + scale_bytes : unit_bytes(T);
  constexpr int header_bytes = has_minimum(T) || is_affine(T) ? 64 : 32;
  const uint8_t* tile = s.tiles + n * s.stride;
  const int blocks = static_cast<int>((rows + block_rows - 1) / block_rows);
  Scales scales;
  alignas(64) Outputs out;
  for (int64_t g = 0; g < s.groups; g += step) {
    const int groups = static_cast<int>(s.groups - g < step ? s.groups - g : step);
    const Part p{tile + g * header_bytes, tile + s.body + g * group_bytes, g, is_super(T) ? part_units : groups};
    if constexpr (is_super(T)) unpack_scales<T>(p.header, p.body + part_units * unit_bytes(T), scales);
    const uint8_t *from = g == 0 ? tile : p.body, *to = p.body + groups * group_bytes;
    const int turns = blocks * p.units, lines = static_cast<int>((to - from) / line);
    meet_rows<T>(s, p, scales, first, rows, out, {from, to, (lines + turns - 1) / turns});
  }
  for (int64_t r = 0; r < rows; r++) store_row(s, n, first + r, _mm512_load_ps(out[r]));
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

// Rows of one pass over the tiles: as many as stay in cache, in passes as even as can be.
int64_t rows_per_pass(const Span& s) {
  const int64_t fitting = cached_bytes / s.x.pitch;
  const int64_t most = fitting < 2 * block_rows ? 2 * block_rows : fitting < pass_rows ? fitting : pass_rows;
  const int64_t passes = (s.M + most - 1) / most, even = (s.M + passes - 1) / passes;
  const int64_t blocks = (even + block_rows - 1) / block_rows * block_rows;
  return blocks < pass_rows ? blocks : pass_rows;
}

struct Products {
  template <Type T>
  static void run(const Span& s) {
    if constexpr (is_float(T)) {
      for (int64_t n = s.first; n < s.last; n++)
        in_fours(s.M, [&](auto rows, int64_t m) { float_tile<T, decltype(rows)::value>(s, n, m); });
    } else {
      const int64_t each = rows_per_pass(s);
      for (int64_t m = 0; m < s.M; m += each)
        for (int64_t n = s.first; n < s.last; n++) multiply_tile<T>(s, n, m, s.M - m < each ? s.M - m : each);
    }
  }
};

}  // namespace

const GemmKernels gemm_avx512 = {multiply_by_type<Products>, quantize_row_g32, quantize_row_g256};

}  // namespace twostroke
