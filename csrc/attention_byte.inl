// Attention over bytes: scores and outputs are exact integer dot products, each scaled to a float once.
//
// A query is rounded to 14 bits under one step of its own, and so are its weights in each chunk, with the values'
// scales folded in.  Hidden keys have weight 0, and 0 times any byte is nothing.  A lane is a key while scores are made
// and an element of the value while they are spent.
#pragma once
#include "coming.inl"
#include "dots.h"
#include "grid.h"
#include "softmax.inl"

namespace twostroke {
namespace TWOSTROKE_PATH {
namespace byte {

#if defined(__AVX512F__)
constexpr int tile_queries = 12, tile_width = 2;  // 24 of 32 registers accumulate
#elif defined(TWOSTROKE_NEON)
constexpr int tile_queries = 3, tile_width = 1;  // 24 of 32: two sums each
#else
constexpr int tile_queries = 6, tile_width = 1;  // 12 of 16 (AVX2)
#endif
constexpr float finest = 16383.0f;

INLINE const float* key_scales(const uint8_t* head) { return reinterpret_cast<const float*>(head); }
INLINE const float* value_scales(const uint8_t* head) { return key_scales(head) + block_tokens; }
INLINE const int8_t* bytes(const uint8_t* head) {
  return reinterpret_cast<const int8_t*>(key_scales(head) + 2 * block_tokens);
}

INLINE int32_t* integers(float* p) { return reinterpret_cast<int32_t*>(p); }  // until they are scaled

INLINE int key_bytes(const ChunkTask& t) {  // with all scales, which lie before the keys
  return 2 * block_tokens * static_cast<int>(sizeof(float)) + byte_value(t.head_dim, 0, 0);
}

// A tile of queries is [head_dim / 4][queries] quads, then a step for each query.
INLINE Quad* quads(float* tile) { return reinterpret_cast<Quad*>(tile); }
INLINE float* steps(float* tile, int head_dim, int queries) {
  return reinterpret_cast<float*>(quads(tile) + head_dim / 4 * queries);
}

INLINE void place_query(const float* x, float scale, int head_dim, float* tile, int n, int queries) {
  float scaled[max_head_dim];
  for (int d = 0; d < head_dim; d += lanes) store(scaled + d, mul(load(x + d), all(scale)));
  const Grid grid = grid_of(scaled, head_dim, finest);
  for (int d = 0; d < head_dim; d += lanes)
    store_quads(quads(tile) + d / 4 * queries + n, queries, codes(grid, load(scaled + d)));
  steps(tile, head_dim, queries)[n] = grid.step;
}

// Sums over `count` quads of N rows against `width` neighbours each, whose bytes lie at place(quad, neighbour).  They
// are stored as they are: with any work between, the compiler keeps them in memory throughout the loop.
template <int N, int width, class Place>
INLINE void multiply(int count, const Quad* quads, const Place& place, int32_t* out, int stride) {
  Dots sums[N][width];
#pragma GCC unroll 16
  for (int n = 0; n < N; n++)
    for (int b = 0; b < width; b++) sums[n][b] = no_dots();
  for (int i = 0; i < count; i++) {
    Bytes x[width];
#pragma GCC unroll 2
    for (int b = 0; b < width; b++) x[b] = load_bytes(place(i, b));
#pragma GCC unroll 16
    for (int n = 0; n < N; n++)
#pragma GCC unroll 2
      for (int b = 0; b < width; b++) sums[n][b] = add_dots(sums[n][b], x[b], quads[i * N + n]);
  }
#pragma GCC unroll 16
  for (int n = 0; n < N; n++)
    for (int b = 0; b < width; b++) store(out + n * stride + b * lanes, total(sums[n][b]));
}

// Integer scores of N queries against `width` neighbouring blocks.  Fetches their values meanwhile, and the keys of the
// blocks of `next`.
template <int N, int width>
INLINE void score(const ChunkTask& t, int block, int next) {
  const int8_t *keys[width], *coming[width];
  for (int b = 0; b < width; b++) {
    keys[b] = bytes(t.blocks[block + b]);
    coming[b] = bytes(t.blocks[next + b]);
  }
  const int values = byte_value(t.head_dim, 0, 0);
  const auto place = [&](int i, int b) {
    const int8_t* here = keys[b] + 4 * lanes * i;
    prefetch(here + values);
    prefetch(coming[b] + 4 * lanes * i);
    return here;
  };
  multiply<N, width>(t.head_dim / 4, quads(t.query), place, integers(t.weights) + block * block_tokens, chunk_keys);
}

template <int N>
INLINE void score_all(const ChunkTask& t, int blocks) {
  int block = 0;
  for (; block + tile_width <= blocks; block += tile_width)
    score<N, tile_width>(t, block, block + 2 * tile_width <= blocks ? block + tile_width : block);
  for (; block < blocks; block++) score<N, 1>(t, block, block);
}

INLINE void soften_scores(const ChunkTask& t, int n) {
  const float step = steps(t.query, t.head_dim, t.queries)[n];
  soften(t, n, [&](float* dots, int block) {
    return mul(mul(to_float(load(integers(dots))), load(key_scales(t.blocks[block]))), all(step));
  });
}

// A query's weights as quads, `stride` apart; returns their step.
INLINE float round_weights(const ChunkTask& t, int n, int blocks, Quad* quads, int stride) {
  float* weights = t.weights + n * chunk_keys;
  Extent extent;
  each_block(t.valid[n], blocks, [&](int b, auto seen) {
    const F scaled = mul(load(weights + b * block_tokens), load(value_scales(t.blocks[b])));
    const F weight = select(seen, scaled, all(0.0f));
    store(weights + b * block_tokens, weight);
    extent.see(weight);
  });
  const Grid grid = grid_of(extent, finest);
  for (int b = 0; b < blocks; b++)
    store_quads(quads + b * block_tokens / 4 * stride, stride, codes(grid, load(weights + b * block_tokens)));
  return grid.step;
}

INLINE void scale_values(const ChunkTask& t, int n, float step) {
  float* values = t.values + n * t.head_dim;
  for (int d = 0; d < t.head_dim; d += lanes) store(values + d, mul(to_float(load(integers(values + d))), all(step)));
}

// The weighted values of N queries, as integers, in `width` neighbouring lane blocks of the head.
template <int N, int width>
INLINE void spend(const ChunkTask& t, int start, int longest, const Quad* weights, Coming& coming) {
  const auto place = [&](int i, int b) {
    coming.fetch();
    return bytes(t.blocks[i / 4]) + byte_value(t.head_dim, i % 4 * 4, start + b * lanes);
  };
  multiply<N, width>((longest + 3) / 4, weights, place, integers(t.values) + start, t.head_dim);
}

template <int N>
static void attend_tile(const ChunkTask& t) {
  int longest = 0;
  for (int n = 0; n < N; n++) longest = t.valid[n] > longest ? t.valid[n] : longest;
  const int blocks = (longest + block_tokens - 1) / block_tokens;
  score_all<N>(t, blocks);
  Quad weights[chunk_keys / 4 * N];
  float weight_steps[N];
  for (int n = 0; n < N; n++) {
    soften_scores(t, n);
    weight_steps[n] = round_weights(t, n, blocks, weights + n, N);
  }
  Coming coming(t, key_bytes(t));
  int start = 0;
  for (; start + tile_width * lanes <= t.head_dim; start += tile_width * lanes)
    spend<N, tile_width>(t, start, longest, weights, coming);
  for (; start < t.head_dim; start += lanes) spend<N, 1>(t, start, longest, weights, coming);
  for (int n = 0; n < N; n++) scale_values(t, n, weight_steps[n]);
}

}  // namespace byte
}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
