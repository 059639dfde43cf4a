// The products without any instruction set: loops over 16 rows or 64 bytes that compilers turn into vectors.
//
// This file is the plainest statement of what every path computes:
//
//   g32    acc = fma(float(sum of code * a), d * scale, acc) per group, then with minimums acc = fma(m, scale * sum of
//   a, acc) g256   acc = fma(t, scale, acc) per group, t = float(S) * d, or fma(float(S), d, -(float(N) * dmin)) with
//   minimums,
//          S = sum of sub-block scale * code * a and N = sum of sub-block minimum * a, both exact integers
//   floats acc = fma(weight, x, acc) per input
//
// in order of the inputs, where codes are those after their offset (8, 16, 32) is taken off.
#include <cmath>

#include "gemm_kernels.h"
#include "half.h"
#include "quantize_row.h"

namespace twostroke {
namespace {

constexpr int line = 64;

struct Lanes {
  float v[tile_rows];
};

struct Sums {
  int32_t v[tile_rows];
};

void load_halves(const uint8_t* p, float* out) {
  for (int r = 0; r < tile_rows; r++) out[r] = float_of_half(load_u16(p + 2 * r));
}

void unpack_nibbles(const uint8_t* body, uint8_t* codes) {
  for (int i = 0; i < 4 * line; i++) {
    codes[i] = body[i] & 15;
    codes[i + 4 * line] = body[i] >> 4;
  }
}

void add_fifth_bits(const uint8_t* plane, uint8_t* codes) {
  for (int i = 0; i < 8; i++)
    for (int p = 0; p < line; p++) codes[i * line + p] |= (plane[p] >> i & 1) << 4;
}

void add_top_pairs(const uint8_t* plane, uint8_t* codes) {
  for (int i = 0; i < 8; i++)
    for (int p = 0; p < line; p++) codes[i * line + p] |= (plane[i / 4 * line + p] >> (i % 4 * 2) & 3) << 4;
}

// Eight quads of unsigned codes; returns how many bytes they took.
int unpack(Type type, const uint8_t* body, uint8_t* codes) {
  if (type == Type::q8_0) {
    for (int i = 0; i < 8 * line; i++) codes[i] = body[i] ^ 0x80;
    return byte_bytes;
  }
  unpack_nibbles(body, codes);
  if (type == Type::q6_k) {
    add_top_pairs(body + nibble_bytes, codes);
    return nibble_bytes + pair_bytes;
  }
  if (type != Type::q5_0 && type != Type::q5_1 && type != Type::q5_k) return nibble_bytes;
  add_fifth_bits(body + nibble_bytes, codes);
  return nibble_bytes + fifth_bytes;
}

Sums dot(const uint8_t* codes, const int8_t* a, int quads) {
  int32_t sums[line] = {};
  for (int i = 0; i < quads; i++) {
    int8_t repeated[line];
    for (int r = 0; r < tile_rows; r++) memcpy(repeated + 4 * r, a + 4 * i, 4);
    for (int p = 0; p < line; p++) sums[p] += static_cast<int16_t>(codes[i * line + p] * repeated[p]);
  }
  Sums all;
  for (int r = 0; r < tile_rows; r++) all.v[r] = sums[4 * r] + sums[4 * r + 1] + sums[4 * r + 2] + sums[4 * r + 3];
  return all;
}

void store(const Span& s, int64_t n, int64_t m, const Lanes& acc) {
  float* out = s.out + m * s.out_stride;
  for (int64_t r = 0, row = n * tile_rows; r < tile_rows && row < s.rows; r++, row++) {
    float v = acc.v[r];
    if (s.bias) v = v + s.bias[row];
    out[row] = s.add ? out[row] + v : v;
  }
}

// How many times minus8 makes up for the offset of the codes.
int offset_eighths(Type type) { return type == Type::q4_0 ? 1 : type == Type::q5_0 ? 2 : type == Type::q8_0 ? 16 : 0; }

Lanes g32_row(const Span& s, const uint8_t* tile, int64_t m) {
  const bool minimum = s.type == Type::q4_1 || s.type == Type::q5_1;
  const int eighths = offset_eighths(s.type), header_bytes = minimum ? 64 : 32;
  const uint8_t* body = tile + s.body;
  Lanes acc = {};
  for (int64_t g = 0; g < s.groups; g++) {
    const int64_t at = m * s.groups + g;
    const int32_t start = eighths * s.x.minus8[at];
    uint8_t codes[8 * line];
    float d[tile_rows], low[tile_rows];
    body += unpack(s.type, body, codes);
    load_halves(tile + g * header_bytes, d);
    const Sums sums = dot(codes, s.x.codes + m * s.x.pitch + g * group_32, 8);
    for (int r = 0; r < tile_rows; r++)
      acc.v[r] = std::fma(static_cast<float>(sums.v[r] + start), d[r] * s.x.scale[at], acc.v[r]);
    if (!minimum) continue;
    load_halves(tile + g * header_bytes + 32, low);
    for (int r = 0; r < tile_rows; r++) acc.v[r] = std::fma(low[r], s.x.scaled_sum[at], acc.v[r]);
  }
  return acc;
}

int six_bits(const uint8_t* block, int line_of, int i, int high_shift) {
  return (block[line_of * line + i % line] >> (i / line * 4) & 15) |
         (block[2 * line + i % line] >> (high_shift + i / line * 2) & 3) << 4;
}

int sub_block_scale(const uint8_t* block, int j, int r) { return six_bits(block, 0, j * tile_rows + r, 0); }
int sub_block_minimum(const uint8_t* block, int j, int r) { return six_bits(block, 1, j / 2 * 32 + r * 2 + j % 2, 4); }

Lanes affine_row(const Span& s, const uint8_t* tile, int64_t m) {
  const uint8_t* body = tile + s.body;
  const int unit = nibble_bytes + (s.type == Type::q5_k ? fifth_bytes : 0);
  Lanes acc = {};
  for (int64_t g = 0; g < s.groups; g++, body += scale_block_bytes) {
    const uint8_t* block = body + 8 * unit;
    const int64_t at = m * s.groups + g;
    Sums total = {}, low = {};
    for (int j = 0; j < 8; j++) {
      uint8_t codes[8 * line];
      body += unpack(s.type, body, codes);
      const Sums sums = dot(codes, s.x.codes + m * s.x.pitch + g * group_256 + j * 32, 8);
      for (int r = 0; r < tile_rows; r++) {
        total.v[r] += sub_block_scale(block, j, r) * sums.v[r];
        low.v[r] += sub_block_minimum(block, j, r) * s.x.sum32[at * 8 + j];
      }
    }
    float d[tile_rows], dmin[tile_rows];
    load_halves(tile + g * 64, d);
    load_halves(tile + g * 64 + 32, dmin);
    for (int r = 0; r < tile_rows; r++) {
      const float t = std::fma(static_cast<float>(total.v[r]), d[r], -(static_cast<float>(low.v[r]) * dmin[r]));
      acc.v[r] = std::fma(t, s.x.scale[at], acc.v[r]);
    }
  }
  return acc;
}

Lanes q6_k_row(const Span& s, const uint8_t* tile, int64_t m) {
  const uint8_t* body = tile + s.body;
  Lanes acc = {};
  for (int64_t g = 0; g < s.groups; g++, body += 16 * tile_rows) {
    const auto* scales = reinterpret_cast<const int8_t*>(body + 8 * (nibble_bytes + pair_bytes));
    const int64_t at = m * s.groups + g;
    Sums total = {};
    for (int j = 0; j < 16; j++) {
      uint8_t codes[8 * line];
      const int half = j % 2;
      const int taken = unpack(s.type, body, codes);
      const Sums sums = dot(codes + half * 4 * line, s.x.codes + m * s.x.pitch + g * group_256 + j * 16, 4);
      const int32_t offset = 32 * s.x.sum16[at * 16 + j];
      for (int r = 0; r < tile_rows; r++) total.v[r] += scales[j / 2 * 32 + r * 2 + half] * (sums.v[r] - offset);
      if (half) body += taken;
    }
    float d[tile_rows];
    load_halves(tile + g * 32, d);
    for (int r = 0; r < tile_rows; r++)
      acc.v[r] = std::fma(static_cast<float>(total.v[r]) * d[r], s.x.scale[at], acc.v[r]);
  }
  return acc;
}

void load_values(Type type, const uint8_t* body, float* out) {
  if (type == Type::f32)
    memcpy(out, body, tile_rows * sizeof(float));
  else if (type == Type::f16)
    load_halves(body, out);
  else
    for (int r = 0; r < tile_rows; r++) out[r] = float_of_bfloat(load_u16(body + 2 * r));
}

Lanes float_row(const Span& s, const uint8_t* tile, int64_t m) {
  const int step = s.type == Type::f32 ? 64 : 32;
  const float* x = s.x.floats + m * s.x.pitch;
  Lanes acc = {};
  for (int64_t k = 0; k < s.groups; k++) {
    float w[tile_rows];
    load_values(s.type, tile + k * step, w);
    for (int r = 0; r < tile_rows; r++) acc.v[r] = std::fma(w[r], x[k], acc.v[r]);
  }
  return acc;
}

Lanes row(const Span& s, const uint8_t* tile, int64_t m) {
  switch (s.type) {
    case Type::f32:
    case Type::f16:
    case Type::bf16:
      return float_row(s, tile, m);
    case Type::q4_k:
    case Type::q5_k:
      return affine_row(s, tile, m);
    case Type::q6_k:
      return q6_k_row(s, tile, m);
    default:
      return g32_row(s, tile, m);
  }
}

void multiply(const Span& s) {
  for (int64_t n = s.first; n < s.last; n++)
    for (int64_t m = 0; m < s.M; m++) store(s, n, m, row(s, s.tiles + n * s.stride, m));
}

}  // namespace

const GemmKernels gemm_portable = {multiply, quantize_row_g32, quantize_row_g256};

}  // namespace twostroke
