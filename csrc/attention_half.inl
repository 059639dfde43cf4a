// Attention over halves: scores and outputs are chains of float fused multiply-adds.
//
// A lane is a key while scores are made and an element of the value while they are spent; each score is one chain over
// the head's dimensions, each output one chain over the chunk's keys, in order.
#pragma once
#include "coming.inl"
#include "softmax.inl"

namespace twostroke {
namespace TWOSTROKE_PATH {
namespace half {

#if defined(__AVX512F__)
constexpr int tile_queries = 12, tile_width = 2;  // 24 of 32 registers accumulate
#else
constexpr int tile_queries = 6, tile_width = 1;  // 12 of 16 (AVX2), 24 of 32 (NEON)
#endif

INLINE const uint16_t* halves(const uint8_t* head) { return reinterpret_cast<const uint16_t*>(head); }

INLINE int key_bytes(const ChunkTask& t) { return block_tokens * t.head_dim * static_cast<int>(sizeof(uint16_t)); }

// A tile of queries is [head_dim][queries] floats.
INLINE void place_query(const float* x, float scale, int head_dim, float* tile, int n, int queries) {
  for (int d = 0; d < head_dim; d++) tile[d * queries + n] = x[d] * scale;
}

// Scores of N queries against `width` neighbouring blocks.  Meanwhile come their values, then the keys of the blocks of
// `next`.
template <int N, int width>
INLINE void score(const ChunkTask& t, int block, int next) {
  const uint8_t *here[width], *coming[width];
  F sums[N][width];
  for (int b = 0; b < width; b++) {
    here[b] = t.blocks[block + b];
    coming[b] = t.blocks[next + b];
  }
#pragma GCC unroll 16
  for (int n = 0; n < N; n++)
    for (int b = 0; b < width; b++) sums[n][b] = all(0.0f);
  const int lines = key_bytes(t) / cache_line;
  for (int d = 0; d < t.head_dim; d++) {
    F key[width];
#pragma GCC unroll 2
    for (int b = 0; b < width; b++) {
      key[b] = load_half(halves(here[b]) + d * block_tokens);
      prefetch(d < lines ? here[b] + (lines + d) * cache_line : coming[b] + (d - lines) * cache_line);
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

template <int N>
INLINE void score_all(const ChunkTask& t, int longest) {
  const int blocks = (longest + block_tokens - 1) / block_tokens;
  int block = 0;
  for (; block + tile_width <= blocks; block += tile_width)
    score<N, tile_width>(t, block, block + 2 * tile_width <= blocks ? block + tile_width : block);
  for (; block < blocks; block++) score<N, 1>(t, block, block);
}

// The weighted values of N queries in `width` neighbouring lane blocks of the head.
template <int N, int width>
INLINE void spend(const ChunkTask& t, int start, int common, int longest, Coming& coming) {
  F sums[N][width];
#pragma GCC unroll 16
  for (int n = 0; n < N; n++)
    for (int b = 0; b < width; b++) sums[n][b] = all(0.0f);
  for (int key = 0; key < longest; key++) {
    const uint16_t* cell =
        halves(t.blocks[key / block_tokens]) + (block_tokens + key % block_tokens) * t.head_dim + start;
    F value[width];
    coming.fetch();
#pragma GCC unroll 2
    for (int b = 0; b < width; b++) value[b] = load_half(cell + b * lanes);
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

template <int N>
static void attend_tile(const ChunkTask& t) {
  int common = chunk_keys, longest = 0;
  for (int n = 0; n < N; n++) {
    common = t.valid[n] < common ? t.valid[n] : common;
    longest = t.valid[n] > longest ? t.valid[n] : longest;
  }
  score_all<N>(t, longest);
  for (int n = 0; n < N; n++) soften(t, n, [](float* scores, int) { return load(scores); });
  Coming coming(t, key_bytes(t));
  int start = 0;
  for (; start + tile_width * lanes <= t.head_dim; start += tile_width * lanes)
    spend<N, tile_width>(t, start, common, longest, coming);
  for (; start < t.head_dim; start += lanes) spend<N, 1>(t, start, common, longest, coming);
}

}  // namespace half
}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
