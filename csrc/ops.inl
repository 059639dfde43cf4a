// Row operations other than products and attention: norms, rotation, gating, and rounding into the KV store.
#pragma once
#include "dots.h"
#include "grid.h"
#include "kernels.h"
#include "math.h"

namespace twostroke {
namespace TWOSTROKE_PATH {

// Calls f(i, n) for each block of n <= 16 elements.
template <class Body>
INLINE void blocks_of(int width, const Body& body) {
  int i = 0;
  for (; i + lanes <= width; i += lanes) body(i, lanes);
  if (i < width) body(i, width - i);
}
INLINE F load_block_of(const float* p, int n) { return n == lanes ? load(p) : load_some(p, n); }
INLINE void store_block_of(float* p, F a, int n) { n == lanes ? store(p, a) : store_some(p, a, n); }

static void norm(const float* x, const float* gain, float eps, int width, float* out) {
  F squares = all(0.0f);
  blocks_of(width, [&](int i, int n) {
    const F v = load_block_of(x + i, n);
    squares = fma(v, v, squares);
  });
  const float mean = tree_sum(squares) / static_cast<float>(width);
  const F scale = all(1.0f / __builtin_sqrtf(mean + eps));
  blocks_of(width, [&](int i, int n) {
    store_block_of(out + i, mul(mul(load_block_of(x + i, n), scale), load_block_of(gain + i, n)), n);
  });
}

// (a, b) -> (a cos - b sin, a sin + b cos), one rounding for each second product and sum.
INLINE void rotate_pair(float& a, float& b, float c, float s) {
  const float x = a, y = b;
  a = __builtin_fmaf(x, c, -(y * s));
  b = __builtin_fmaf(x, s, y * c);
}

static void rotate(float* head, const float* cos, const float* sin, int half, bool interleaved) {
  if (interleaved)
    for (int i = 0; i < half; i++) rotate_pair(head[2 * i], head[2 * i + 1], cos[i], sin[i]);
  else
    for (int i = 0; i < half; i++) rotate_pair(head[i], head[half + i], cos[i], sin[i]);
}

static void silu_mul(const float* gate, const float* up, int width, float* out) {
  blocks_of(width, [&](int i, int n) {
    const F g = load_block_of(gate + i, n);
    const F silu = div(g, add(all(1.0f), exp(sub(all(0.0f), g))));
    store_block_of(out + i, mul(silu, load_block_of(up + i, n)), n);
  });
}

static void add_row(const float* x, float* out, int width) {
  blocks_of(width,
            [&](int i, int n) { store_block_of(out + i, add(load_block_of(out + i, n), load_block_of(x + i, n)), n); });
}

// Rounds one vector of a cell, element i to place(i); returns its scale.
template <class Code, class Place>
INLINE float round_cell(const float* x, int width, const Place& place) {
  const Grid grid = grid_of(x, width, {largest_code<Code>, unbounded});
  for (int i = 0; i < width; i += lanes) {
    int32_t rounded[lanes];
    store(rounded, codes(grid, load(x + i)));
    for (int j = 0; j < lanes; j++) *place(i + j) = static_cast<Code>(rounded[j]);
  }
  return grid.step;
}

static void store_cell(uint8_t* head, KVType type, int head_dim, int slot, const float* key, const float* value) {
  by_code(type, [=](auto code) {
    using Code = decltype(code);
    const Cells<Code> cells{head};
    cells.key_scales()[slot] =
        round_cell<Code>(key, head_dim, [=](int d) { return cells.codes() + key_at<Code>(slot, d); });
    cells.value_scales()[slot] =
        round_cell<Code>(value, head_dim, [=](int d) { return cells.codes() + value_at<Code>(head_dim, slot, d); });
  });
}

static void load_block(const uint8_t* head, KVType type, int head_dim, float* keys, float* values) {
  by_code(type, [=](auto code) {
    using Code = decltype(code);
    const Cells<const Code> cells{head};
    for (int slot = 0; slot < block_tokens; slot++)
      for (int d = 0; d < head_dim; d++) {
        keys[slot * head_dim + d] =
            cells.key_scales()[slot] * static_cast<float>(cells.codes()[key_at<Code>(slot, d)]);
        values[slot * head_dim + d] =
            cells.value_scales()[slot] * static_cast<float>(cells.codes()[value_at<Code>(head_dim, slot, d)]);
      }
  });
}

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
