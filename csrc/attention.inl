// Attention of a tile of queries over one chunk of stored keys, and the merging of chunks.
//
// A lane is a key while scores are made and an element of the value while they are spent; each score is one chain of
// fused multiply-adds over the head's dimensions, each output one chain over the chunk's keys.  So a query's result
// depends on its own vector and the keys it sees, whoever shares the tile.  Hidden keys are selected away, never
// multiplied: their cells may hold anything.
#pragma once
#include "kernels.h"
#include "math.h"

namespace twostroke {
namespace TWOSTROKE_PATH {

#if defined(__AVX512F__)
constexpr int tile_queries = 12, tile_width = 2;  // 24 of 32 registers accumulate
#else
constexpr int tile_queries = 6, tile_width = 1;  // 12 of 16 (AVX2), 24 of 32 (NEON)
#endif

struct HalfCells {
  using Cell = uint16_t;
  INLINE const Cell* keys(const uint8_t* head) { return reinterpret_cast<const Cell*>(head); }
  INLINE F at(const Cell* p) { return load_half(p); }
  INLINE F scaled_key(const uint8_t*, F score) { return score; }
  INLINE F scaled_value(const uint8_t*, F weight) { return weight; }
};

struct ByteCells {
  using Cell = int8_t;
  INLINE const float* scales(const uint8_t* head) { return reinterpret_cast<const float*>(head); }
  INLINE const Cell* keys(const uint8_t* head) {
    return reinterpret_cast<const Cell*>(scales(head) + 2 * block_tokens);
  }
  INLINE F at(const Cell* p) { return load_byte(p); }
  INLINE F scaled_key(const uint8_t* head, F score) { return mul(score, load(scales(head))); }
  INLINE F scaled_value(const uint8_t* head, F weight) { return mul(weight, load(scales(head) + block_tokens)); }
};

// Scores of N queries against `width` neighbouring blocks; fetches the blocks of `next` meanwhile.
template <class Cells, int N, int width>
INLINE void score(const ChunkTask& t, int block, int next) {
  const typename Cells::Cell* keys[width];
  const uint8_t* coming[width];
  F sums[N][width];
  for (int b = 0; b < width; b++) {
    keys[b] = Cells::keys(t.blocks[block + b]);
    coming[b] = t.blocks[next + b];
  }
#pragma GCC unroll 16
  for (int n = 0; n < N; n++)
    for (int b = 0; b < width; b++) sums[n][b] = all(0.0f);
  for (int d = 0; d < t.head_dim; d++) {
    F key[width];
#pragma GCC unroll 2
    for (int b = 0; b < width; b++) {
      key[b] = Cells::at(keys[b] + d * block_tokens);
      prefetch(coming[b] + d * 2 * block_tokens * sizeof(typename Cells::Cell));
    }
#pragma GCC unroll 16
    for (int n = 0; n < N; n++) {
      const F q = all(t.query[d * N + n]);
#pragma GCC unroll 2
      for (int b = 0; b < width; b++) sums[n][b] = fma(q, key[b], sums[n][b]);
    }
  }
#pragma GCC unroll 16
  for (int n = 0; n < N; n++)
    for (int b = 0; b < width; b++) store(t.weights + n * chunk_keys + (block + b) * block_tokens, sums[n][b]);
}

template <class Cells, int N>
INLINE void score_all(const ChunkTask& t, int longest) {
  const int blocks = (longest + block_tokens - 1) / block_tokens;
  int block = 0;
  for (; block + tile_width <= blocks; block += tile_width)
    score<Cells, N, tile_width>(t, block, block + 2 * tile_width <= blocks ? block + tile_width : block);
  for (; block < blocks; block++) score<Cells, N, 1>(t, block, block);
}

// Turns a query's scores into weights exp(score - maximum), values' scales folded in; keeps the maximum and the sum.
template <class Cells>
INLINE void soften(const ChunkTask& t, int n) {
  const int valid = t.valid[n], blocks = (valid + block_tokens - 1) / block_tokens;
  float* weights = t.weights + n * chunk_keys;
  F highest = all(-__builtin_inff());
  for (int b = 0; b < blocks; b++) {
    const F scaled = Cells::scaled_key(t.blocks[b], load(weights + b * block_tokens));
    const F seen = select(first(valid - b * block_tokens), scaled, all(-__builtin_inff()));
    store(weights + b * block_tokens, seen);
    highest = max(seen, highest);
  }
  const float maximum = tree_max(highest);
  F total = all(0.0f);
  for (int b = 0; b < blocks; b++) {
    const F weight = exp(sub(load(weights + b * block_tokens), all(maximum)));
    total = add(total, select(first(valid - b * block_tokens), weight, all(0.0f)));
    store(weights + b * block_tokens, Cells::scaled_value(t.blocks[b], weight));
  }
  t.maximum[n] = maximum;
  t.sum[n] = tree_sum(total);
}

// The weighted values of N queries in `width` neighbouring lane blocks of the head.
template <class Cells, int N, int width>
INLINE void spend(const ChunkTask& t, int start, int common, int longest) {
  F sums[N][width];
#pragma GCC unroll 16
  for (int n = 0; n < N; n++)
    for (int b = 0; b < width; b++) sums[n][b] = all(0.0f);
  for (int key = 0; key < longest; key++) {
    const auto* cell =
        Cells::keys(t.blocks[key / block_tokens]) + (block_tokens + key % block_tokens) * t.head_dim + start;
    F value[width];
#pragma GCC unroll 2
    for (int b = 0; b < width; b++) value[b] = Cells::at(cell + b * lanes);
    if (key < common) {
#pragma GCC unroll 16
      for (int n = 0; n < N; n++) {
        const F weight = all(t.weights[n * chunk_keys + key]);
#pragma GCC unroll 2
        for (int b = 0; b < width; b++) sums[n][b] = fma(weight, value[b], sums[n][b]);
      }
    } else {
#pragma GCC unroll 16
      for (int n = 0; n < N; n++)
        if (key < t.valid[n])
          for (int b = 0; b < width; b++) sums[n][b] = fma(all(t.weights[n * chunk_keys + key]), value[b], sums[n][b]);
    }
  }
#pragma GCC unroll 16
  for (int n = 0; n < N; n++)
    for (int b = 0; b < width; b++) store(t.values + n * t.head_dim + start + b * lanes, sums[n][b]);
}

template <class Cells, int N>
static void attend_tile(const ChunkTask& t) {
  int common = chunk_keys, longest = 0;
  for (int n = 0; n < N; n++) {
    common = t.valid[n] < common ? t.valid[n] : common;
    longest = t.valid[n] > longest ? t.valid[n] : longest;
  }
  score_all<Cells, N>(t, longest);
  for (int n = 0; n < N; n++) soften<Cells>(t, n);
  int start = 0;
  for (; start + tile_width * lanes <= t.head_dim; start += tile_width * lanes)
    spend<Cells, N, tile_width>(t, start, common, longest);
  for (; start < t.head_dim; start += lanes) spend<Cells, N, 1>(t, start, common, longest);
}

// The instance for exactly t.queries queries.
template <class Cells, int N>
INLINE void attend_sized(const ChunkTask& t) {
  if (t.queries == N) return attend_tile<Cells, N>(t);
  if constexpr (N > 1) attend_sized<Cells, N - 1>(t);
}

static void attend_chunk(const ChunkTask& t) {
  if (t.type == KVType::f16)
    attend_sized<HalfCells, tile_queries>(t);
  else
    attend_sized<ByteCells, tile_queries>(t);
}

// Appends one chunk to a softmax in progress, in order of position (Milakov and Gimelshein 2018).
static void merge(Partial into, float maximum, float sum, const float* values, int head_dim, bool first_chunk) {
  if (first_chunk) {
    *into.maximum = maximum, *into.sum = sum;
    std::memcpy(into.values, values, static_cast<size_t>(head_dim) * sizeof(float));
    return;
  }
  const float top = *into.maximum > maximum ? *into.maximum : maximum;
  const float before = exp(*into.maximum - top), now = exp(maximum - top);
  *into.maximum = top;
  *into.sum = __builtin_fmaf(sum, now, *into.sum * before);
  for (int d = 0; d < head_dim; d += lanes)
    store(into.values + d, fma(load(values + d), all(now), mul(load(into.values + d), all(before))));
}

static void finish(Partial done, int head_dim, float* out) {
  const F sum = all(*done.sum);
  for (int d = 0; d < head_dim; d += lanes) store(out + d, div(load(done.values + d), sum));
}

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
