// Buffers of quantised activations; see gemm.h and, for the arithmetic, quantize_row.h.
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "gemm_kernels.h"

namespace twostroke {
namespace {

constexpr int64_t line = 64;

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

int64_t group_of(Grouping grouping) {
  return grouping == Grouping::g32 ? group_32 : grouping == Grouping::g256 ? group_256 : 1;
}

// An odd number of cache lines between rows, so that 16 rows read side by side fall into different cache sets.
int64_t code_pitch(int64_t cols) { return (round_up(cols, line) / line | 1) * line; }

// Hands out consecutive 64-byte aligned pieces; the first pass, without memory, only counts.
struct Carver {
  uint8_t* at;
  size_t used = 0;
  template <class T>
  T* take(int64_t count) {
    T* piece = at ? reinterpret_cast<T*>(at + used) : nullptr;
    used += round_up(count * static_cast<int64_t>(sizeof(T)), line);
    return piece;
  }
};

Rows carve(Grouping grouping, int64_t cols, int64_t rows, Carver& carver) {
  Rows r{};
  r.groups = cols / group_of(grouping);
  r.pitch = grouping == Grouping::floats ? cols : code_pitch(cols);
  const int64_t all = rows * r.groups;
  if (grouping == Grouping::floats) {
    r.floats = carver.take<float>(rows * r.pitch);
    return r;
  }
  r.codes = carver.take<int8_t>(rows * r.pitch);
  r.scale = carver.take<float>(all);
  if (grouping == Grouping::g32) {
    r.minus8 = carver.take<int32_t>(all);
    r.scaled_sum = carver.take<float>(all);
  } else {
    r.sum32 = carver.take<int16_t>(all * 8);
    r.sum16 = carver.take<int16_t>(all * 16);
    r.minus32 = carver.take<int32_t>(all * 16);
  }
  return r;
}

template <class T>
T* at(const T* first, int64_t offset) {
  return first ? const_cast<T*>(first) + offset : nullptr;
}

}  // namespace

// calloc, so that large buffers become resident only as rows are set, and rows never set read as zero.
Activations::Activations(Grouping grouping, int64_t cols, int64_t capacity) : data_(new Data) {
  const int64_t group = group_of(grouping);
  if (cols <= 0 || cols % group != 0 || capacity <= 0)
    throw std::invalid_argument("activations need a positive multiple of " + std::to_string(group) +
                                " columns and at least one row, not " + std::to_string(cols) + " columns and " +
                                std::to_string(capacity) + " rows");
  const int64_t padded = round_up(capacity, tile_rows) + tile_rows;
  Carver count{nullptr};
  carve(grouping, cols, padded, count);
  data_->memory = {static_cast<uint8_t*>(calloc(count.used + line, 1)), free};
  if (!data_->memory) throw std::bad_alloc();
  Carver carver{reinterpret_cast<uint8_t*>(round_up(reinterpret_cast<intptr_t>(data_->memory.get()), line))};
  data_->grouping = grouping;
  data_->cols = cols;
  data_->capacity = capacity;
  data_->rows = carve(grouping, cols, padded, carver);
}

Activations::~Activations() = default;

void Activations::set_row(int64_t row, const float* x) {
  const Rows& r = data_->rows;
  if (data_->grouping == Grouping::floats) {
    memcpy(at(r.floats, row * r.pitch), x, static_cast<size_t>(data_->cols) * sizeof(float));
    return;
  }
  const int64_t g = row * r.groups;
  const QuantizedRow out{at(r.codes, row * r.pitch), at(r.scale, g),      at(r.minus8, g),      at(r.scaled_sum, g),
                         at(r.sum32, g * 8),         at(r.sum16, g * 16), at(r.minus32, g * 16)};
  (data_->grouping == Grouping::g32 ? gemm_kernels().quantize_g32 : gemm_kernels().quantize_g256)(x, r.groups, out);
}

}  // namespace twostroke
