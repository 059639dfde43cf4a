// From a file's blocks to tiles of 16 rows, losslessly; the layouts are in format.h, the blocks are ggml's.
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "arena.h"
#include "weight.h"

namespace twostroke {
namespace {

constexpr size_t line = 64;

// One group of one row, a code or scale per byte, in the order of its inputs.
struct Group {
  uint8_t codes[group_256];
  uint8_t scales[16], minimums[8];
  uint8_t header[4];  // d, then m or dmin
};

void read_nibbles(const uint8_t* q, uint8_t* codes) {
  for (int i = 0; i < 16; i++) codes[i] = q[i] & 15;
  for (int i = 0; i < 16; i++) codes[i + 16] = q[i] >> 4;
}

// Eight bits become 8 bytes of 0 or 16: bit j is kept in byte j of a copy, then moved to the same place in every byte.
void add_fifth_bits(const uint8_t* bits, uint8_t* codes) {
  for (int i = 0; i < 4; i++) {
    const uint64_t kept = bits[i] * 0x0101010101010101u & 0x8040201008040201u;
    const uint64_t moved = ((kept + 0x7f7f7f7f7f7f7f7fu) & 0x8080808080808080u) >> 3;
    for (int j = 0; j < 8; j++) codes[8 * i + j] |= moved >> (8 * j) & 255;
  }
}

// Six-bit scales and minimums in 12 bytes (ggml's get_scale_min_k4).
void read_k_scales(const uint8_t* q, Group& g) {
  for (int j = 0; j < 4; j++) {
    g.scales[j] = q[j] & 63;
    g.minimums[j] = q[j + 4] & 63;
    g.scales[j + 4] = (q[j + 8] & 15) | (q[j] >> 6) << 4;
    g.minimums[j + 4] = (q[j + 8] >> 4) | (q[j + 4] >> 6) << 4;
  }
}

// Nibbles of 64 inputs share 32 bytes, the low ones come first; bit j of a byte of `bits` belongs to sub-block j.
void read_k_codes(const uint8_t* q, const uint8_t* bits, uint8_t* codes) {
  for (int j = 0; j < 8; j++)
    for (int i = 0; i < 32; i++) codes[32 * j + i] = q[j / 2 * 32 + i] >> (j % 2 * 4) & 15;
  if (!bits) return;
  for (int j = 0; j < 8; j++)
    for (int i = 0; i < 32; i++) codes[32 * j + i] |= (bits[i] >> j & 1) << 4;
}

// Each half of 128 inputs has 64 bytes of nibbles and 32 bytes of top pairs, four parts of 32 inputs side by side.
void read_q6_k(const uint8_t* b, Group& g) {
  for (int part = 0; part < 8; part++) {
    const int half = part / 4, quarter = part % 4;
    const uint8_t *low = b + half * 64 + quarter % 2 * 32, *high = b + 128 + half * 32;
    for (int i = 0; i < 32; i++)
      g.codes[32 * part + i] = (low[i] >> (quarter / 2 * 4) & 15) | (high[i] >> (2 * quarter) & 3) << 4;
  }
  memcpy(g.scales, b + 192, 16);
  memcpy(g.header, b + 208, 2);
}

void read_group(Type type, const uint8_t* b, Group& g) {
  if (type == Type::q6_k) return read_q6_k(b, g);
  const bool two = type == Type::q4_1 || type == Type::q5_1 || type == Type::q4_k || type == Type::q5_k;
  const uint8_t* q = b + (two ? 4 : 2);
  memcpy(g.header, b, two ? 4 : 2);
  switch (type) {
    case Type::q5_0:
    case Type::q5_1:
      read_nibbles(q + 4, g.codes);
      return add_fifth_bits(q, g.codes);
    case Type::q8_0:
      memcpy(g.codes, q, group_32);
      return;
    case Type::q4_k:
      read_k_scales(q, g);
      return read_k_codes(q + 12, nullptr, g.codes);
    case Type::q5_k:
      read_k_scales(q, g);
      return read_k_codes(q + 44, q + 12, g.codes);
    default:
      return read_nibbles(q, g.codes);
  }
}

// A group of 16 rows: its codes in quads (64 bytes each), and where its header and body lie.
struct TileGroup {
  alignas(64) uint8_t quads[group_256 / 4 * line];
  uint8_t *header, *body;
};

void write_scale_block(const Group& g, int row, uint8_t* block) {
  for (int j = 0; j < 8; j++) {
    const int s = j * 16 + row, n = j / 2 * 32 + row * 2 + j % 2;
    block[s % 64] |= (g.scales[j] & 15) << (s / 64 * 4);
    block[line + n % 64] |= (g.minimums[j] & 15) << (n / 64 * 4);
    block[2 * line + s % 64] |= (g.scales[j] >> 4) << (s / 64 * 2);
    block[2 * line + n % 64] |= (g.minimums[j] >> 4) << (4 + n / 64 * 2);
  }
}

// One row's share of a tile group: its header, scales and codes; the codes of all rows are packed by write_units.
void write_row(const Format& f, const Group& g, int row, TileGroup& t) {
  for (int h = 0; h < f.header_bytes / 32; h++) memcpy(t.header + h * 32 + row * 2, g.header + 2 * h, 2);
  for (int q = 0; q < f.group / 4; q++) memcpy(t.quads + q * line + row * 4, g.codes + 4 * q, 4);
  if (f.type == Type::q4_k || f.type == Type::q5_k)
    write_scale_block(g, row, t.body + f.body_bytes - scale_block_bytes);
  if (f.type != Type::q6_k) return;
  uint8_t* scales = t.body + f.body_bytes - 16 * tile_rows;
  for (int j = 0; j < 16; j++) scales[j / 2 * 32 + row * 2 + j % 2] = g.scales[j];
}

void write_nibbles(const uint8_t* quads, uint8_t* body) {
  for (int p = 0; p < nibble_bytes; p++) body[p] = (quads[p] & 15) | (quads[p + nibble_bytes] & 15) << 4;
}

void write_fifth_bits(const uint8_t* quads, uint8_t* plane) {
  for (int i = 0; i < 8; i++)
    for (size_t p = 0; p < line; p++) plane[p] |= (quads[i * line + p] >> 4 & 1) << i;
}

void write_top_pairs(const uint8_t* quads, uint8_t* plane) {
  for (int i = 0; i < 8; i++)
    for (size_t p = 0; p < line; p++) plane[i / 4 * line + p] |= (quads[i * line + p] >> 4) << (i % 4 * 2);
}

void write_units(const Format& f, const TileGroup& t) {
  const bool five = f.type == Type::q5_0 || f.type == Type::q5_1 || f.type == Type::q5_k;
  uint8_t* body = t.body;
  for (const uint8_t* quads = t.quads; quads < t.quads + f.group / 4 * line; quads += 8 * line) {
    if (f.type == Type::q8_0) {
      memcpy(body, quads, byte_bytes);
      continue;
    }
    write_nibbles(quads, body);
    body += nibble_bytes;
    if (five) write_fifth_bits(quads, body), body += fifth_bytes;
    if (f.type == Type::q6_k) write_top_pairs(quads, body), body += pair_bytes;
  }
}

void pack_floats(const Weight& w, int64_t row, const uint8_t* source) {
  const int size = w.format->file_bytes;
  uint8_t* tile = w.data.get() + row / tile_rows * w.stride + row % tile_rows * size;
  for (int64_t k = 0; k < w.cols; k++) memcpy(tile + k * tile_rows * size, source + k * size, size);
}

void pack_tile(const Weight& w, int64_t n, const uint8_t* data) {
  const Format& f = *w.format;
  const size_t row_bytes = static_cast<size_t>(w.groups) * f.file_bytes;
  const int64_t first = n * tile_rows, present = std::min<int64_t>(tile_rows, w.rows - first);
  uint8_t* tile = w.data.get() + n * w.stride;
  TileGroup t = {};
  Group g = {};
  for (int64_t i = 0; i < w.groups; i++) {
    t.header = tile + i * f.header_bytes;
    t.body = tile + w.body + i * f.body_bytes;
    for (int r = 0; r < present; r++) {
      read_group(f.type, data + (first + r) * row_bytes + i * f.file_bytes, g);
      write_row(f, g, r, t);
    }
    write_units(f, t);
  }
}

void pack_all(const Weight& w, const uint8_t* data) {
  if (w.format->grouping == Grouping::floats)
    for (int64_t r = 0; r < w.rows; r++) pack_floats(w, r, data + r * w.cols * w.format->file_bytes);
  else
    for (int64_t n = 0; n < w.tiles; n++) pack_tile(w, n, data);
}

void require(bool holds, const std::string& message) {
  if (!holds) throw std::invalid_argument(message);
}

}  // namespace

std::shared_ptr<Weight> pack(int ggml_type, int64_t rows, int64_t cols, const uint8_t* data, size_t bytes) {
  const Format& f = format_of(ggml_type);
  constexpr int64_t largest = int64_t{1} << 31;
  require(rows > 0 && cols > 0 && rows < largest && cols < largest,
          "a weight needs 1 to 2^31 - 1 rows and columns, not " + std::to_string(rows) + " x " + std::to_string(cols));
  require(cols % f.group == 0, std::string(f.name) + " needs a multiple of " + std::to_string(f.group) +
                                   " columns, not " + std::to_string(cols));
  auto w = std::make_shared<Weight>();
  w->format = &f;
  w->rows = rows;
  w->cols = cols;
  w->groups = cols / f.group;
  w->tiles = (rows + tile_rows - 1) / tile_rows;
  const size_t row_bytes = static_cast<size_t>(w->groups) * f.file_bytes;
  w->file_bytes = row_bytes * rows;
  require(bytes == w->file_bytes, std::string(f.name) + " of " + std::to_string(rows) + " x " + std::to_string(cols) +
                                      " takes " + std::to_string(w->file_bytes) + " bytes, not " +
                                      std::to_string(bytes));
  w->body = (static_cast<size_t>(w->groups) * f.header_bytes + line - 1) / line * line;
  w->stride = (w->body + static_cast<size_t>(w->groups) * f.body_bytes + line - 1) / line * line;
  w->data = allocate_weights(w->stride * w->tiles);
  pack_all(*w, data);
  return w;
}

Grouping grouping(const Weight& w) { return w.format->grouping; }
int64_t rows(const Weight& w) { return w.rows; }
int64_t cols(const Weight& w) { return w.cols; }
size_t file_bytes(const Weight& w) { return w.file_bytes; }
size_t resident_bytes(const Weight& w) { return w.stride * w.tiles; }

}  // namespace twostroke
