// The softmax of attention: over one chunk of scores, and over chunks as they are merged.
#pragma once
#include "kernels.h"
#include "math.h"

namespace twostroke {
namespace TWOSTROKE_PATH {

// Turns a query's scores into weights exp(score - maximum); keeps the maximum and the sum.  Hidden keys are selected
// away, never multiplied: their cells may hold anything.  `scored` makes the scores of a block of what is stored there.
template <class Scored>
INLINE void soften(const ChunkTask& t, int n, const Scored& scored) {
  const int valid = t.valid[n], blocks = (valid + block_tokens - 1) / block_tokens;
  float* weights = t.weights + n * chunk_keys;
  F highest = all(-__builtin_inff());
  for (int b = 0; b < blocks; b++) {
    const F scores = scored(weights + b * block_tokens, b);
    const F seen = select(first(valid - b * block_tokens), scores, all(-__builtin_inff()));
    store(weights + b * block_tokens, seen);
    highest = max(seen, highest);
  }
  const float maximum = tree_max(highest);
  F total = all(0.0f);
  for (int b = 0; b < blocks; b++) {
    const F weight = exp(sub(load(weights + b * block_tokens), all(maximum)));
    total = add(total, select(first(valid - b * block_tokens), weight, all(0.0f)));
    store(weights + b * block_tokens, weight);
  }
  t.maximum[n] = maximum;
  t.sum[n] = tree_sum(total);
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
