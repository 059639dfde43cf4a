// What a packed weight and a set of quantised activations look like inside, for the kernels.
#pragma once
#include <memory>
#include <string>

#include "format.h"
#include "gemm.h"

namespace twostroke {

struct Weight {
  const Format* format;
  int64_t rows, cols, groups, tiles;
  size_t body;    // offset of the first group's body in a tile
  size_t stride;  // bytes from tile to tile
  size_t file_bytes;
  std::shared_ptr<uint8_t> data;
};

constexpr int group_32 = 32, group_256 = 256;

// A read-only view of activations; rows are `pitch` codes (or floats) apart, per-group values `groups` times their
// width. Rows up to the next multiple of 16 may be read (what they hold does not matter).
struct Rows {
  int64_t groups, pitch;
  const float* floats;      // floats: the inputs themselves
  const int8_t* codes;      // g32, g256
  const float* scale;       // [groups]
  const int32_t* minus8;    // g32: [groups], -8 * sum of codes
  const float* scaled_sum;  // g32: [groups], scale * sum of codes
  const int16_t* sum32;     // g256: [groups][8], sums of 32 codes
  const int16_t* sum16;     // g256: [groups][16], sums of 16 codes
  const int32_t* minus32;   // g256: [groups][16], -32 * sum of 16 codes
};

struct Activations::Data {
  Grouping grouping;
  int64_t cols, capacity;
  std::unique_ptr<uint8_t, void (*)(void*)> memory{nullptr, nullptr};
  Rows rows;
};

}  // namespace twostroke
