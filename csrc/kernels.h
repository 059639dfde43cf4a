// The table of row kernels of one instruction set.
//
// Every table computes the same bits (lanes.h); they are compiled once per set and chosen by kernel_path().  A kernel
// works on one row, one head or one tile of queries, and knows nothing about threads, sequences or models.
#pragma once
#include <cstddef>
#include <cstdint>

#include "store.h"

namespace twostroke {

constexpr int chunk_keys = 256;  // attention combines keys in chunks at fixed absolute positions
constexpr int chunk_blocks = chunk_keys / block_tokens;

// One chunk of keys against up to tile_queries() queries of one kv head.
struct ChunkTask {
  const uint8_t* const* blocks;  // the head's part of each block of the chunk, as many as the longest `valid` needs
  const uint8_t* const* next;    // likewise for the chunk that will be asked for after this one
  int next_blocks;               // 0 if that is not known
  KVType type;
  int head_dim;
  int queries;
  const int* valid;  // keys of the chunk that each query sees, 0…256
  float* query;      // as place_query left them: head_dim floats each
  float* weights;    // scratch, [queries][chunk_keys]
  float* maximum;    // out, [queries]: the largest score
  float* sum;        // out, [queries]: of exp(score - maximum)
  float* values;     // out, [queries][head_dim]: the values weighted by it
};

// A softmax in progress over chunks 0…c of one query.
struct Partial {
  float* maximum;
  float* sum;
  float* values;  // [head_dim]
};

// The results of `count` chunks of one query, one after another and `stride` floats apart.
struct Partials {
  const float *maximum, *sum, *values;
  int count;
  int64_t stride;
};

// How one token is drawn (DESIGN: `argmax(logits / temperature + gumbel)`).
struct NoiseKey {
  uint64_t seed;
  uint32_t choice;
  uint32_t position;
};

// What truncation leaves: the tokens up to (logit, id) in order of falling logit and rising id, and of these the ones
// whose weight, relative to the largest logit `top`, is at least min_p.
struct Cut {
  float logit;
  int32_t id;
  float min_p;
  float top;
};

constexpr int mass_slices = 256;

struct Kernels {
  void (*norm)(const float* x, const float* gain, float eps, int width, float* out);
  void (*rotate)(float* head, const float* cos, const float* sin, int half, bool interleaved);
  void (*silu_mul)(const float* gate, const float* up, int width, float* out);
  void (*add)(const float* x, float* out, int width);
  void (*store_cell)(uint8_t* head, KVType type, int head_dim, int slot, const float* key, const float* value);
  void (*load_block)(const uint8_t* head, KVType type, int head_dim, float* keys, float* values);

  int (*tile_queries)(KVType type);  // at once, at most
  void (*place_query)(KVType type, const float* x, float scale, int head_dim, float* tile, int n, int queries);
  void (*attend_chunk)(const ChunkTask& task);
  void (*merge)(Partial into, const Partials& chunks, int head_dim, bool first);
  void (*finish)(Partial done, int head_dim, float* out);

  void (*noise)(NoiseKey key, const int32_t* ids, int count, float* out);
  void (*group_maxima)(const float* logits, int count, float* maxima);  // of each 64
  int (*draw)(const float* logits, int count, const float* maxima, float temperature, NoiseKey key, Cut cut,
              float least);
  void (*weights)(const float* logits, int count, float temperature, float top, float* out);
  void (*slice_masses)(const float* logits, int count, float temperature, float top, int64_t* masses);
  int (*in_slice)(const float* logits, int count, float temperature, float top, int wanted, int32_t* ids);
  int (*at_least)(const float* logits, int count, float threshold, int32_t* ids);
  float (*log)(float x);
};

extern const Kernels kernels_portable, kernels_avx2, kernels_avx512, kernels_neon;
const Kernels& kernels();  // of the path in use

}  // namespace twostroke
