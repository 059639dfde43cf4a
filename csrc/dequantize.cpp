// One row of a packed weight as floats, with the very operations of ggml's dequantize_row functions.
#include <stdexcept>
#include <string>

#include "half.h"
#include "weight.h"

namespace twostroke {
namespace {

// Where input k (0..31) of a lane lies in a quad's line, and in which quad.
int position(int lane, int k) { return lane * 4 + k % 4; }

int nibble(const uint8_t* body, int lane, int k) {
  return body[k / 4 % 4 * 64 + position(lane, k)] >> (k / 16 * 4) & 15;
}

int fifth(const uint8_t* plane, int lane, int k) { return plane[position(lane, k)] >> (k / 4) & 1; }

int top_pair(const uint8_t* plane, int lane, int k) {
  return plane[k / 16 * 64 + position(lane, k)] >> (k / 4 % 4 * 2) & 3;
}

float half_at(const uint8_t* header, int lane) { return float_of_half(load_u16(header + 2 * lane)); }

struct SubBlock {
  float scale, minimum;
};

// d * scale and dmin * minimum of sub-block j; the packing of the scale block is in format.h.
SubBlock sub_block(const uint8_t* block, const uint8_t* header, int lane, int j) {
  const int s = j * 16 + lane, n = j / 2 * 32 + lane * 2 + j % 2;
  const int scale = (block[s % 64] >> (s / 64 * 4) & 15) | (block[128 + s % 64] >> (s / 64 * 2) & 3) << 4;
  const int minimum = (block[64 + n % 64] >> (n / 64 * 4) & 15) | (block[128 + n % 64] >> (4 + n / 64 * 2) & 3) << 4;
  return {half_at(header, lane) * static_cast<float>(scale), half_at(header + 32, lane) * static_cast<float>(minimum)};
}

void nibble_group(Type type, const uint8_t* header, const uint8_t* body, int lane, float* out) {
  const bool five = type == Type::q5_0 || type == Type::q5_1, minimum = type == Type::q4_1 || type == Type::q5_1;
  const int offset = minimum ? 0 : five ? 16 : 8;
  const float d = half_at(header, lane), m = minimum ? half_at(header + 32, lane) : 0.0f;
  for (int k = 0; k < group_32; k++) {
    const int code = nibble(body, lane, k) | (five ? fifth(body + nibble_bytes, lane, k) << 4 : 0);
    const float value = d * static_cast<float>(code - offset);
    out[k] = minimum ? value + m : value;
  }
}

void byte_group(const uint8_t* header, const uint8_t* body, int lane, float* out) {
  const float d = half_at(header, lane);
  for (int k = 0; k < group_32; k++)
    out[k] = d * static_cast<float>(static_cast<int8_t>(body[k / 4 * 64 + position(lane, k)]));
}

void affine_super_block(bool five, const uint8_t* header, const uint8_t* body, int lane, float* out) {
  const int unit = nibble_bytes + (five ? fifth_bytes : 0);
  for (int j = 0; j < 8; j++, body += unit, out += 32) {
    const SubBlock b = sub_block(body + (8 - j) * unit, header, lane, j);
    for (int k = 0; k < 32; k++) {
      const int code = nibble(body, lane, k) | (five ? fifth(body + nibble_bytes, lane, k) << 4 : 0);
      out[k] = b.scale * static_cast<float>(code) - b.minimum;
    }
  }
}

void q6_k_super_block(const uint8_t* header, const uint8_t* body, int lane, float* out) {
  constexpr int unit = nibble_bytes + pair_bytes;
  const auto* scales = reinterpret_cast<const int8_t*>(body + 8 * unit);
  const float d = half_at(header, lane);
  for (int j = 0; j < 8; j++, body += unit, out += 32) {
    for (int k = 0; k < 32; k++) {
      const int code = nibble(body, lane, k) | top_pair(body + nibble_bytes, lane, k) << 4;
      out[k] = d * static_cast<float>(scales[j * 32 + lane * 2 + k / 16]) * static_cast<float>(code - 32);
    }
  }
}

float plain_value(Type type, const uint8_t* p) {
  if (type == Type::f16) return float_of_half(load_u16(p));
  if (type == Type::bf16) return float_of_bfloat(load_u16(p));
  float f;
  memcpy(&f, p, sizeof f);
  return f;
}

void group_values(Type type, const uint8_t* header, const uint8_t* body, int lane, float* out) {
  switch (type) {
    case Type::q8_0:
      return byte_group(header, body, lane, out);
    case Type::q4_k:
    case Type::q5_k:
      return affine_super_block(type == Type::q5_k, header, body, lane, out);
    case Type::q6_k:
      return q6_k_super_block(header, body, lane, out);
    case Type::f32:
    case Type::f16:
    case Type::bf16:
      *out = plain_value(type, body + lane * (type == Type::f32 ? 4 : 2));
      return;
    default:
      return nibble_group(type, header, body, lane, out);
  }
}

}  // namespace

void dequantize_row(const Weight& w, int64_t row, float* out) {
  if (row < 0 || row >= w.rows)
    throw std::invalid_argument("row " + std::to_string(row) + " is outside a weight of " + std::to_string(w.rows) +
                                " rows");
  const Format& f = *w.format;
  const uint8_t* tile = w.data.get() + row / tile_rows * w.stride;
  const int lane = static_cast<int>(row % tile_rows);
  for (int64_t g = 0; g < w.groups; g++)
    group_values(f.type, tile + g * f.header_bytes, tile + w.body + g * f.body_bytes, lane, out + g * f.group);
}

}  // namespace twostroke
