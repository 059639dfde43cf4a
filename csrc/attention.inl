// Attention of a tile of queries over one chunk of stored keys: exact integer dot products, each scaled to a float.
//
// A query is rounded to integers under one step of its own, and so are its weights in each chunk, with the values'
// scales folded in.  Hidden keys have weight 0, and 0 times any integer is nothing.  A lane is a key while scores are
// made and an element of the value while they are spent.  A query's result depends on its own vector and the keys it
// sees, whoever shares the tile.
#pragma once
#include "coming.inl"
#include "dots.h"
#include "softmax.inl"

namespace twostroke {
namespace TWOSTROKE_PATH {

#if defined(__AVX512F__)
constexpr int tile_width = 2;
template <class Code> constexpr int tile_of = 12;  // 24 of 32 registers accumulate
#elif defined(TWOSTROKE_NEON)
constexpr int tile_width = 1;
template <class Code> constexpr int tile_of = sizeof(Code) == 1 ? 3 : 5;  // 24 and 20 of 32; bytes take two sums each
#else
constexpr int tile_width = 1;
template <class Code> constexpr int tile_of = 6;  // 12 of 16 (AVX2)
#endif

static int tile_queries(KVType type) {
  return by_code(type, [](auto code) { return tile_of<decltype(code)>; });
}

// Sums lie where they become floats.
INLINE int32_t* integers(float* p) { return reinterpret_cast<int32_t*>(p); }
INLINE const int32_t* integers(const float* p) { return reinterpret_cast<const int32_t*>(p); }

// A tile of queries is [head_dim / 4][queries] quads, then a step for each query.
template <class Code>
INLINE QuadOf<Code>* quads(float* tile) {
  return reinterpret_cast<QuadOf<Code>*>(tile);
}
INLINE float* steps(float* tile, int head_dim, int queries) { return tile + head_dim / 2 * queries; }

static void place_query(KVType type, const float* x, float scale, int head_dim, float* tile, int n, int queries) {
  by_code(type, [=](auto code) {
    using Code = decltype(code);
    float scaled[max_head_dim];
    for (int d = 0; d < head_dim; d += lanes) store(scaled + d, mul(load(x + d), all(scale)));
    const Grid grid = grid_of(scaled, head_dim, rounded_bounds<Code>);
    for (int d = 0; d < head_dim; d += lanes) {
      QuadOf<Code> four[4];
      store_quads(four, codes(grid, load(scaled + d)));
      for (int i = 0; i < 4; i++) quads<Code>(tile)[(d / 4 + i) * queries + n] = four[i];
    }
    steps(tile, head_dim, queries)[n] = grid.step;
  });
}

template <class Code>
INLINE Cells<const Code> cells(const ChunkTask& t, int block) {
  return {t.blocks[block]};
}

template <class Code>
INLINE int key_bytes(const ChunkTask& t) {  // of a block, with all scales, which lie before the keys
  return block_tokens * static_cast<int>(2 * sizeof(float) + t.head_dim * sizeof(Code));
}

template <class Code>
INLINE void prefetch_group(const Code* p) {
  prefetch(p);
  if constexpr (sizeof(Code) > 1) prefetch(p + group_codes / 2);
}

// Sums over `count` quads of N rows, at quad(number, row), against `width` neighbours each, whose integers lie at
// place(number, neighbour).  They are stored as they are: with any work between, the compiler keeps them in memory
// throughout the loop.
template <class Code, int N, int width, class Quads, class Place>
INLINE void multiply(int count, const Quads& quad, const Place& place, int32_t* out, int stride) {
  DotsOf<Code> sums[N][width];
#pragma GCC unroll 16
  for (int n = 0; n < N; n++)
    for (int b = 0; b < width; b++) sums[n][b] = DotsOf<Code>();
  for (int i = 0; i < count; i++) {
    GroupOf<Code> x[width];
#pragma GCC unroll 2
    for (int b = 0; b < width; b++) x[b] = load_group(place(i, b));
#pragma GCC unroll 16
    for (int n = 0; n < N; n++)
#pragma GCC unroll 2
      for (int b = 0; b < width; b++) sums[n][b] = add_dots(sums[n][b], x[b], quad(i, n));
  }
#pragma GCC unroll 16
  for (int n = 0; n < N; n++)
    for (int b = 0; b < width; b++) store(out + n * stride + b * lanes, total(sums[n][b]));
}

// Integer scores of N queries against `width` neighbouring blocks.  Fetches their values meanwhile, and the keys of the
// blocks of `next`.
template <class Code, int N, int width>
INLINE void score(const ChunkTask& t, int block, int next) {
  const Code *keys[width], *coming[width];
  for (int b = 0; b < width; b++) {
    keys[b] = cells<Code>(t, block + b).codes();
    coming[b] = cells<Code>(t, next + b).codes();
  }
  const int values = block_tokens * t.head_dim;
  const auto place = [&](int i, int b) {
    const Code* here = keys[b] + group_codes * i;
    prefetch_group(here + values);
    prefetch_group(coming[b] + group_codes * i);
    return here;
  };
  const auto* queries = quads<Code>(t.query);
  const auto query = [=](int i, int n) -> const QuadOf<Code>& { return queries[i * N + n]; };
  multiply<Code, N, width>(t.head_dim / 4, query, place, integers(t.weights) + block * block_tokens, chunk_keys);
}

template <class Code, int N>
INLINE void score_all(const ChunkTask& t, int blocks) {
  int block = 0;
  for (; block + tile_width <= blocks; block += tile_width)
    score<Code, N, tile_width>(t, block, block + 2 * tile_width <= blocks ? block + tile_width : block);
  for (; block < blocks; block++) score<Code, N, 1>(t, block, block);
}

// The weights of N queries as integers.
template <class Code, int N>
struct Weights {
  QuadOf<Code> quads[N][chunk_keys / 4];
  float steps[N];
};

// Makes a query's weights of its scores, with the values' scales in them.
template <class Code, int N>
INLINE void weigh(const ChunkTask& t, int n, int blocks, Weights<Code, N>& to) {
  float* weights = t.weights + n * chunk_keys;
  const float step = steps(t.query, t.head_dim, N)[n];
  const auto scored = [&](const float* dots, int b) {
    return mul(mul(to_float(load(integers(dots))), load(cells<Code>(t, b).key_scales())), all(step));
  };
  const auto priced = [&](F weight, int b) { return mul(weight, load(cells<Code>(t, b).value_scales())); };
  const Grid grid = grid_of(soften(t, n, scored, priced), rounded_bounds<Code>);
  const int seen = (t.valid[n] + block_tokens - 1) / block_tokens;
  for (int b = 0; b < blocks; b++)
    store_quads(to.quads[n] + b * block_tokens / 4,
                b < seen ? codes(grid, load(weights + b * block_tokens)) : all(int32_t{0}));
  to.steps[n] = grid.step;
}

INLINE void scale_values(const ChunkTask& t, int n, float step) {
  float* values = t.values + n * t.head_dim;
  for (int d = 0; d < t.head_dim; d += lanes) store(values + d, mul(to_float(load(integers(values + d))), all(step)));
}

// The weighted values of N queries, as integers, in `width` neighbouring lane blocks of the head.
template <class Code, int N, int width>
INLINE void spend(const ChunkTask& t, int start, int longest, const Weights<Code, N>& weights, Coming& coming) {
  const auto weight = [&](int i, int n) -> const QuadOf<Code>& { return weights.quads[n][i]; };
  const auto place = [&](int i, int b) {
    for (size_t line = 0; line < sizeof(Code); line++) coming.fetch();
    return cells<Code>(t, i / 4).codes() + value_at<Code>(t.head_dim, i % 4 * 4, start + b * lanes);
  };
  multiply<Code, N, width>((longest + 3) / 4, weight, place, integers(t.values) + start, t.head_dim);
}

template <class Code, int N>
static void attend_tile(const ChunkTask& t) {
  int longest = 0;
  for (int n = 0; n < N; n++) longest = t.valid[n] > longest ? t.valid[n] : longest;
  const int blocks = (longest + block_tokens - 1) / block_tokens;
  score_all<Code, N>(t, blocks);
  Weights<Code, N> weights;
  for (int n = 0; n < N; n++) weigh(t, n, blocks, weights);
  Coming coming(t, key_bytes<Code>(t));
  int start = 0;
  for (; start + tile_width * lanes <= t.head_dim; start += tile_width * lanes)
    spend<Code, N, tile_width>(t, start, longest, weights, coming);
  for (; start < t.head_dim; start += lanes) spend<Code, N, 1>(t, start, longest, weights, coming);
  for (int n = 0; n < N; n++) scale_values(t, n, weights.steps[n]);
}

// The instance for exactly t.queries queries.
template <class Code, int N>
INLINE void attend_queries(const ChunkTask& t) {
  if (t.queries == N) return attend_tile<Code, N>(t);
  if constexpr (N > 1) attend_queries<Code, N - 1>(t);
}

static void attend_chunk(const ChunkTask& t) {
  by_code(t.type, [&](auto code) { attend_queries<decltype(code), tile_of<decltype(code)>>(t); });
}

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
