// Attention of a tile of queries over one chunk of stored keys, by the type of the store.
//
// A query's result depends on its own vector and the keys it sees, whoever shares the tile.
#pragma once
#include "attention_byte.inl"
#include "attention_half.inl"

namespace twostroke {
namespace TWOSTROKE_PATH {

static int tile_queries(KVType type) { return type == KVType::f16 ? half::tile_queries : byte::tile_queries; }

static void place_query(KVType type, const float* x, float scale, int head_dim, float* tile, int n, int queries) {
  if (type == KVType::f16)
    half::place_query(x, scale, head_dim, tile, n, queries);
  else
    byte::place_query(x, scale, head_dim, tile, n, queries);
}

// The instances for exactly t.queries queries.
template <int N>
INLINE void attend_halves(const ChunkTask& t) {
  if (t.queries == N) return half::attend_tile<N>(t);
  if constexpr (N > 1) attend_halves<N - 1>(t);
}
template <int N>
INLINE void attend_bytes(const ChunkTask& t) {
  if (t.queries == N) return byte::attend_tile<N>(t);
  if constexpr (N > 1) attend_bytes<N - 1>(t);
}

static void attend_chunk(const ChunkTask& t) {
  if (t.type == KVType::f16)
    attend_halves<half::tile_queries>(t);
  else
    attend_bytes<byte::tile_queries>(t);
}

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
