// The products with NEON's byte dot products: one tile against up to 4 activation rows, four output rows at a time.
//
// A register holds 16 bytes of a quad: the 4 codes of each of 4 output rows, which sdot multiplies by 4 activations and
// adds up in 32 bits, exactly.  Codes are at most 63, so they count as signed; sums start from what takes off
// their offset (8, 16, 32).  An accumulator is kept for each of the 16 rows, so a tile is read once.
#include <arm_neon.h>

#include "by_type.h"
#include "gemm_kernels.h"
#include "quantize_row.h"

namespace twostroke {
namespace {

#define TWOSTROKE_INLINE inline __attribute__((always_inline))

constexpr int line = 64, quarters = 4, quarter_rows = 4, quarter_line = 16;

// How many times minus8 makes up for the offset of the codes; Q8_0 has none, its bytes are signed.
constexpr int offset_eighths(Type t) { return t == Type::q4_0 ? 1 : t == Type::q5_0 ? 2 : 0; }

TWOSTROKE_INLINE float32x4_t load_halves(const uint8_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

// Shift bytes left (positive) or right.
TWOSTROKE_INLINE uint8x16_t shift(uint8x16_t v, int left) { return vshlq_u8(v, vdupq_n_s8(static_cast<int8_t>(left))); }

// Eight quads of codes of 4 rows; `body` points at the quarter's first byte.
template <Type T>
TWOSTROKE_INLINE void unpack(const uint8_t* body, int8x16_t w[8]) {
#pragma GCC unroll 8
  for (int i = 0; i < 8; i++) {
    if constexpr (T == Type::q8_0) {
      w[i] = vreinterpretq_s8_u8(vld1q_u8(body + i * line));
      continue;
    }
    const uint8x16_t x = vld1q_u8(body + i % 4 * line);
    uint8x16_t code = i < 4 ? vandq_u8(x, vdupq_n_u8(15)) : vshrq_n_u8(x, 4);
    if constexpr (is_five(T))
      code = vorrq_u8(code, vandq_u8(shift(vld1q_u8(body + nibble_bytes), 4 - i), vdupq_n_u8(16)));
    if constexpr (T == Type::q6_k) {
      const uint8x16_t pairs = vld1q_u8(body + nibble_bytes + i / 4 * line);
      code = vorrq_u8(code, vandq_u8(shift(pairs, 4 - i % 4 * 2), vdupq_n_u8(48)));
    }
    w[i] = vreinterpretq_s8_u8(code);
  }
}

// Adds the products of four quads with 16 activations.
TWOSTROKE_INLINE int32x4_t dot16(int32x4_t sum, const int8x16_t w[4], const int8_t* a) {
  const int8x16_t x = vld1q_s8(a);
  sum = vdotq_laneq_s32(sum, w[0], x, 0);
  sum = vdotq_laneq_s32(sum, w[1], x, 1);
  sum = vdotq_laneq_s32(sum, w[2], x, 2);
  return vdotq_laneq_s32(sum, w[3], x, 3);
}

TWOSTROKE_INLINE int32x4_t dot32(int32x4_t sum, const int8x16_t w[8], const int8_t* a) {
  return dot16(dot16(sum, w, a), w + 4, a + 16);
}

// Adds, for each of 4 rows, its pair of factors times one pair of sums of activations.
TWOSTROKE_INLINE int32x4_t add_pair_products(int32x4_t sum, int16x8_t factors, const int16_t* sums) {
  int32_t pair;
  memcpy(&pair, sums, sizeof pair);
  const int16x8_t both = vreinterpretq_s16_s32(vdupq_n_s32(pair));
  const int32x4_t low = vmull_s16(vget_low_s16(factors), vget_low_s16(both)), high = vmull_high_s16(factors, both);
  return vaddq_s32(sum, vpaddq_s32(low, high));
}

// The sums of one tile for M activation rows.
template <int M>
struct Accumulators {
  float32x4_t v[M][quarters];
};

template <Type T, int M>
TWOSTROKE_INLINE void g32_tile(const Span& s, const uint8_t* tile, int64_t m, Accumulators<M>& acc) {
  constexpr int header_bytes = has_minimum(T) ? 64 : 32;
  const uint8_t *header = tile, *body = tile + s.body;
  const int8_t* a = s.x.codes + m * s.x.pitch;
  for (int64_t g = 0, at = m * s.groups; g < s.groups;
       g++, at++, a += group_32, header += header_bytes, body += unit_bytes(T)) {
#pragma GCC unroll 4
    for (int q = 0; q < quarters; q++) {
      int8x16_t w[8];
      unpack<T>(body + q * quarter_line, w);
      const float32x4_t d = load_halves(header + q * 2 * quarter_rows);
#pragma GCC unroll 4
      for (int r = 0; r < M; r++) {
        const int64_t i = at + r * s.groups;
        const int32x4_t start = vdupq_n_s32(offset_eighths(T) * s.x.minus8[i]);
        const float32x4_t sum = vcvtq_f32_s32(dot32(start, w, a + r * s.x.pitch));
        acc.v[r][q] = vfmaq_f32(acc.v[r][q], sum, vmulq_n_f32(d, s.x.scale[i]));
        if constexpr (has_minimum(T))
          acc.v[r][q] =
              vfmaq_n_f32(acc.v[r][q], load_halves(header + 32 + q * 2 * quarter_rows), s.x.scaled_sum[i]);
      }
    }
  }
}

// The scale block's bytes: S[8][16], then N[4][16][2].
TWOSTROKE_INLINE void unpack_scale_block(const uint8_t* block, uint8_t* bytes) {
  const uint8x16_t nibble = vdupq_n_u8(15), pair = vdupq_n_u8(48);
  for (int i = 0; i < 8; i++) {
    const int part = i % 4 * 16, bit = i / 4 * 4;  // the high pairs of S start at bit 0, those of N at bit 4
    const uint8x16_t low = vld1q_u8(block + i / 4 * line + part), high = vld1q_u8(block + 2 * line + part);
    vst1q_u8(bytes + i / 4 * 128 + part, vorrq_u8(vandq_u8(low, nibble), vandq_u8(shift(high, 4 - bit), pair)));
    vst1q_u8(bytes + i / 4 * 128 + part + 64, vorrq_u8(vshrq_n_u8(low, 4), vandq_u8(shift(high, 2 - bit), pair)));
  }
}

TWOSTROKE_INLINE int32x4_t load_scales(const uint8_t* p) {
  uint32_t four;
  memcpy(&four, p, sizeof four);
  const uint16x8_t wide = vmovl_u8(vreinterpret_u8_u32(vdup_n_u32(four)));
  return vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(wide)));
}

template <Type T, int M>
TWOSTROKE_INLINE void affine_tile(const Span& s, const uint8_t* tile, int64_t m, Accumulators<M>& acc) {
  const uint8_t *header = tile, *body = tile + s.body;
  const int8_t* a = s.x.codes + m * s.x.pitch;
  for (int64_t g = 0, at = m * s.groups; g < s.groups; g++, at++, header += 64, body += scale_block_bytes) {
    uint8_t scales[256];
    unpack_scale_block(body + 8 * unit_bytes(T), scales);
    int32x4_t total[M][quarters] = {};
    for (int j = 0; j < 8; j++, a += 32, body += unit_bytes(T)) {
#pragma GCC unroll 4
      for (int q = 0; q < quarters; q++) {
        int8x16_t w[8];
        unpack<T>(body + q * quarter_line, w);
        const int32x4_t scale = load_scales(scales + j * tile_rows + q * quarter_rows);
#pragma GCC unroll 4
        for (int r = 0; r < M; r++)
          total[r][q] = vmlaq_s32(total[r][q], dot32(vdupq_n_s32(0), w, a + r * s.x.pitch), scale);
      }
    }
    for (int q = 0; q < quarters; q++) {
      const uint8_t* minimums = scales + 128 + q * 2 * quarter_rows;
      const float32x4_t d = load_halves(header + q * 2 * quarter_rows);
      const float32x4_t dmin = load_halves(header + 32 + q * 2 * quarter_rows);
      for (int r = 0; r < M; r++) {
        const int64_t i = at + r * s.groups;
        int32x4_t low = vdupq_n_s32(0);
        for (int j = 0; j < 4; j++)
          low = add_pair_products(low, vreinterpretq_s16_u16(vmovl_u8(vld1_u8(minimums + j * 32))),
                                  s.x.sum32 + i * 8 + 2 * j);
        const float32x4_t taken = vmulq_f32(vcvtq_f32_s32(low), dmin);
        const float32x4_t t = vfmaq_f32(vnegq_f32(taken), vcvtq_f32_s32(total[r][q]), d);
        acc.v[r][q] = vfmaq_n_f32(acc.v[r][q], t, s.x.scale[i]);
      }
    }
  }
}

template <Type T, int M>
TWOSTROKE_INLINE void q6_k_tile(const Span& s, const uint8_t* tile, int64_t m, Accumulators<M>& acc) {
  const uint8_t *header = tile, *body = tile + s.body;
  const int8_t* a = s.x.codes + m * s.x.pitch;
  for (int64_t g = 0, at = m * s.groups; g < s.groups; g++, at++, header += 32, body += 16 * tile_rows) {
    const uint8_t* scales = body + 8 * unit_bytes(T);
    int32x4_t total[M][quarters] = {};
    for (int j = 0; j < 8; j++, a += 32, body += unit_bytes(T)) {
#pragma GCC unroll 4
      for (int q = 0; q < quarters; q++) {
        int8x16_t w[8];
        unpack<T>(body + q * quarter_line, w);
        const int16x8_t pairs = vmovl_s8(vreinterpret_s8_u8(vld1_u8(scales + j * 32 + q * 2 * quarter_rows)));
        const int32x4_t both = vreinterpretq_s32_s16(pairs);  // the scale of the first 16 inputs is the low half
        const int32x4_t first = vshrq_n_s32(vshlq_n_s32(both, 16), 16), second = vshrq_n_s32(both, 16);
#pragma GCC unroll 4
        for (int r = 0; r < M; r++) {
          const int8_t* x = a + r * s.x.pitch;
          const int32_t* start = s.x.minus32 + (at + r * s.groups) * 16 + 2 * j;
          total[r][q] = vmlaq_s32(total[r][q], dot16(vdupq_n_s32(start[0]), w, x), first);
          total[r][q] = vmlaq_s32(total[r][q], dot16(vdupq_n_s32(start[1]), w + 4, x + 16), second);
        }
      }
    }
    for (int q = 0; q < quarters; q++) {
      const float32x4_t d = load_halves(header + q * 2 * quarter_rows);
      for (int r = 0; r < M; r++) {
        const float32x4_t t = vmulq_f32(vcvtq_f32_s32(total[r][q]), d);
        acc.v[r][q] = vfmaq_n_f32(acc.v[r][q], t, s.x.scale[at + r * s.groups]);
      }
    }
  }
}

template <Type T>
TWOSTROKE_INLINE float32x4_t load_values(const uint8_t* p) {
  if constexpr (T == Type::f32) return vreinterpretq_f32_u8(vld1q_u8(p));
  if constexpr (T == Type::f16) return load_halves(p);
  return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

template <Type T, int M>
TWOSTROKE_INLINE void float_tile(const Span& s, const uint8_t* tile, int64_t m, Accumulators<M>& acc) {
  constexpr int step = T == Type::f32 ? 64 : 32;
  const float* x = s.x.floats + m * s.x.pitch;
  for (int64_t k = 0; k < s.groups; k++, tile += step)
#pragma GCC unroll 4
    for (int q = 0; q < quarters; q++) {
      const float32x4_t w = load_values<T>(tile + q * step / quarters);
#pragma GCC unroll 4
      for (int r = 0; r < M; r++) acc.v[r][q] = vfmaq_n_f32(acc.v[r][q], w, x[r * s.x.pitch + k]);
    }
}

// The outputs of tile n for one activation row; the last tile may hold fewer than 16.
TWOSTROKE_INLINE void store_row(const Span& s, int64_t n, int64_t m, const float32x4_t v[quarters]) {
  const int64_t first = n * tile_rows, present = s.rows - first < tile_rows ? s.rows - first : tile_rows;
  float* out = s.out + m * s.out_stride + first;
  float values[tile_rows];
  for (int q = 0; q < quarters; q++) vst1q_f32(values + q * quarter_rows, v[q]);
  for (int64_t i = 0; i < present; i++) {
    const float value = s.bias ? values[i] + s.bias[first + i] : values[i];
    out[i] = s.add ? out[i] + value : value;
  }
}

template <Type T, int M>
void tile(const Span& s, int64_t n, int64_t m) {
  const uint8_t* p = s.tiles + n * s.stride;
  Accumulators<M> acc = {};
  if constexpr (is_float(T))
    float_tile<T, M>(s, p, m, acc);
  else if constexpr (is_affine(T))
    affine_tile<T, M>(s, p, m, acc);
  else if constexpr (T == Type::q6_k)
    q6_k_tile<T, M>(s, p, m, acc);
  else
    g32_tile<T, M>(s, p, m, acc);
  for (int r = 0; r < M; r++) store_row(s, n, m + r, acc.v[r]);
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

const GemmKernels gemm_neon = {multiply_by_type<Products>, quantize_row_g32, quantize_row_g256};

}  // namespace twostroke
