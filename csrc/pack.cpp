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

// The codes and scales of one group of one row, one per byte, as the file orders its inputs.
struct Group {
  uint8_t codes[group_256];
  uint8_t scales[16], minimums[8];
  uint8_t header[4];  // d, then m or dmin
};

void read_nibbles(const uint8_t* q, uint8_t* codes) {
  for (int i = 0; i < 16; i++) {
    codes[i] = q[i] & 15;
    codes[i + 16] = q[i] >> 4;
  }
}

void add_fifth_bits(const uint8_t* bits, uint8_t* codes) {
  for (int i = 0; i < 32; i++) codes[i] |= (bits[i / 8] >> (i % 8) & 1) << 4;
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

// Nibbles of 64 inputs share 32 bytes: the low ones come first.
void read_k_nibbles(const uint8_t* q, uint8_t* codes) {
  for (int j = 0; j < 256; j++) codes[j] = (q[j / 64 * 32 + j % 32] >> (j / 32 % 2 * 4)) & 15;
}

void read_q6_k(const uint8_t* b, Group& g) {
  const uint8_t *low = b, *high = b + 128;
  for (int j = 0; j < 256; j++) {
    const int half = j / 128, part = j % 128 / 32, i = j % 32;
    const int nibble = (low[half * 64 + part % 2 * 32 + i] >> (part / 2 * 4)) & 15;
    g.codes[j] = nibble | ((high[half * 32 + i] >> (2 * part)) & 3) << 4;
  }
  memcpy(g.scales, b + 192, 16);
  memcpy(g.header, b + 208, 2);
}

void read_group(Type type, const uint8_t* b, Group& g) {
  switch (type) {
    case Type::q4_0:
      memcpy(g.header, b, 2);
      return read_nibbles(b + 2, g.codes);
    case Type::q4_1:
      memcpy(g.header, b, 4);
      return read_nibbles(b + 4, g.codes);
    case Type::q5_0:
      memcpy(g.header, b, 2);
      read_nibbles(b + 6, g.codes);
      return add_fifth_bits(b + 2, g.codes);
    case Type::q5_1:
      memcpy(g.header, b, 4);
      read_nibbles(b + 8, g.codes);
      return add_fifth_bits(b + 4, g.codes);
    case Type::q8_0:
      memcpy(g.header, b, 2);
      memcpy(g.codes, b + 2, 32);
      return;
    case Type::q4_k:
      memcpy(g.header, b, 4);
      read_k_scales(b + 4, g);
      return read_k_nibbles(b + 16, g.codes);
    case Type::q5_k:
      memcpy(g.header, b, 4);
      read_k_scales(b + 4, g);
      read_k_nibbles(b + 48, g.codes);
      for (int j = 0; j < 256; j++) g.codes[j] |= (b[16 + j % 32] >> (j / 32) & 1) << 4;
      return;
    case Type::q6_k:
      return read_q6_k(b, g);
    default:
      return;
  }
}

// Where input k (0..31) of a row lies: its quad, and its position in the quad's 64 bytes.
int quad(int k) { return k / 4; }
int position(int row, int k) { return row * 4 + k % 4; }

void write_nibbles(const uint8_t* codes, int row, uint8_t* body) {
  for (int k = 0; k < 32; k++) body[quad(k) % 4 * line + position(row, k)] |= (codes[k] & 15) << (quad(k) / 4 * 4);
}

void write_fifth_bits(const uint8_t* codes, int row, uint8_t* plane) {
  for (int k = 0; k < 32; k++) plane[position(row, k)] |= (codes[k] >> 4 & 1) << quad(k);
}

void write_top_pairs(const uint8_t* codes, int row, uint8_t* plane) {
  for (int k = 0; k < 32; k++) plane[quad(k) / 4 * line + position(row, k)] |= (codes[k] >> 4) << (quad(k) % 4 * 2);
}

void write_bytes(const uint8_t* codes, int row, uint8_t* body) {
  for (int k = 0; k < 32; k++) body[quad(k) * line + position(row, k)] = codes[k];
}

void write_scale_block(const Group& g, int row, uint8_t* block) {
  for (int j = 0; j < 8; j++) {
    const int s = j * 16 + row, n = j / 2 * 32 + row * 2 + j % 2;
    block[s % 64] |= (g.scales[j] & 15) << (s / 64 * 4);
    block[line + n % 64] |= (g.minimums[j] & 15) << (n / 64 * 4);
    block[2 * line + s % 64] |= (g.scales[j] >> 4) << (s / 64 * 2);
    block[2 * line + n % 64] |= (g.minimums[j] >> 4) << (4 + n / 64 * 2);
  }
}

void write_super_block(Type type, const Group& g, int row, uint8_t* body) {
  for (int j = 0; j < 8; j++) {
    write_nibbles(g.codes + 32 * j, row, body);
    body += nibble_bytes;
    if (type == Type::q5_k) write_fifth_bits(g.codes + 32 * j, row, body), body += fifth_bytes;
    if (type == Type::q6_k) write_top_pairs(g.codes + 32 * j, row, body), body += pair_bytes;
  }
  if (type != Type::q6_k) return write_scale_block(g, row, body);
  for (int j = 0; j < 16; j++) body[j / 2 * 32 + row * 2 + j % 2] = g.scales[j];
}

void write_group(Type type, const Group& g, int row, uint8_t* body) {
  switch (type) {
    case Type::q4_0:
    case Type::q4_1:
      return write_nibbles(g.codes, row, body);
    case Type::q5_0:
    case Type::q5_1:
      write_nibbles(g.codes, row, body);
      return write_fifth_bits(g.codes, row, body + nibble_bytes);
    case Type::q8_0:
      return write_bytes(g.codes, row, body);
    default:
      return write_super_block(type, g, row, body);
  }
}

void pack_floats(const Weight& w, int64_t row, const uint8_t* source) {
  const int size = w.format->file_bytes;
  uint8_t* tile = w.data.get() + row / tile_rows * w.stride + row % tile_rows * size;
  for (int64_t k = 0; k < w.cols; k++) memcpy(tile + k * tile_rows * size, source + k * size, size);
}

void pack_row(const Weight& w, int64_t row, const uint8_t* source) {
  const Format& f = *w.format;
  if (f.grouping == Grouping::floats) return pack_floats(w, row, source);
  uint8_t* tile = w.data.get() + row / tile_rows * w.stride;
  const int lane = static_cast<int>(row % tile_rows);
  Group g;
  for (int64_t i = 0; i < w.groups; i++) {
    read_group(f.type, source + i * f.file_bytes, g);
    for (int h = 0; h < f.header_bytes / 32; h++)
      memcpy(tile + i * f.header_bytes + h * 32 + lane * 2, g.header + 2 * h, 2);
    write_group(f.type, g, lane, tile + w.body + i * f.body_bytes);
  }
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
  for (int64_t r = 0; r < rows; r++) pack_row(*w, r, data + r * row_bytes);
  return w;
}

Grouping grouping(const Weight& w) { return w.format->grouping; }
int64_t rows(const Weight& w) { return w.rows; }
int64_t cols(const Weight& w) { return w.cols; }
size_t file_bytes(const Weight& w) { return w.file_bytes; }
size_t resident_bytes(const Weight& w) { return w.stride * w.tiles; }

}  // namespace twostroke
