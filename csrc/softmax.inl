// The softmax of attention: over one chunk of scores, and over chunks as they are merged.
#pragma once
#include "grid.h"
#include "kernels.h"
#include "math.h"

namespace twostroke {
namespace TWOSTROKE_PATH {

// All keys of a block are seen.
struct Whole {};
INLINE F select(Whole, F seen, F) { return seen; }

// body(block, seen) for each block of the first `valid` keys.
template <class Body>
INLINE void each_block(int valid, const Body& body) {
  const int whole = valid / block_tokens, rest = valid % block_tokens;
  for (int b = 0; b < whole; b++) body(b, Whole{});
  if (rest > 0) body(whole, first(rest));
}

// Turns a query's scores into weights exp(score - maximum) and leaves `priced` of them; keeps the maximum and the sum.
// Hidden keys are selected away, never multiplied: their cells may hold anything.  `scored` makes the scores of a block
// of what is stored there.  Returns how far the prices, which are not negative, reach.
template <class Scored, class Priced>
INLINE Extent soften(const ChunkTask& t, int n, const Scored& scored, const Priced& priced) {
  const int valid = t.valid[n];
  float* weights = t.weights + n * chunk_keys;
  F highest = all(-__builtin_inff());
  each_block(valid, [&](int b, auto seen) {
    const F scores = select(seen, scored(weights + b * block_tokens, b), all(-__builtin_inff()));
    store(weights + b * block_tokens, scores);
    highest = max(scores, highest);
  });
  const float maximum = tree_max(highest);
  F total = all(0.0f);
  Extent extent;
  each_block(valid, [&](int b, auto seen) {
    const F weight = exp_below_one(sub(load(weights + b * block_tokens), all(maximum)));
    const F price = select(seen, priced(weight, b), all(0.0f));
    total = add(total, select(seen, weight, all(0.0f)));
    store(weights + b * block_tokens, price);
    extent.see_magnitude(price);
  });
  t.maximum[n] = maximum;
  t.sum[n] = tree_sum(total);
  return extent;
}

// What scales the softmax so far and each chunk when a chunk is appended, for up to `lanes` chunks.
struct Factors {
  alignas(64) float before[lanes] = {}, now[lanes] = {};
};

// Takes the maximum over chunks begin … end along.
INLINE Factors factors(const Partials& chunks, int begin, int end, float& maximum) {
  Factors f;
  for (int c = begin; c < end; c++) {
    const float own = chunks.maximum[c * chunks.stride], top = maximum > own ? maximum : own;
    f.before[c - begin] = maximum - top;
    f.now[c - begin] = own - top;
    maximum = top;
  }
  store(f.before, exp_below_one(load(f.before)));
  store(f.now, exp_below_one(load(f.now)));
  return f;
}

// Appends chunks to a softmax in progress, one after another in order of position (Milakov and Gimelshein 2018).
static void merge(Partial into, const Partials& chunks, int head_dim, bool first) {
  if (first) {
    *into.maximum = *chunks.maximum, *into.sum = *chunks.sum;
    std::memcpy(into.values, chunks.values, static_cast<size_t>(head_dim) * sizeof(float));
  }
  for (int begin = first, end; begin < chunks.count; begin = end) {
    end = begin + lanes < chunks.count ? begin + lanes : chunks.count;
    const Factors f = factors(chunks, begin, end, *into.maximum);
    for (int c = begin; c < end; c++)
      *into.sum = __builtin_fmaf(chunks.sum[c * chunks.stride], f.now[c - begin], *into.sum * f.before[c - begin]);
    for (int d = 0; d < head_dim; d += lanes) {
      F values = load(into.values + d);
      for (int c = begin; c < end; c++)
        values = fma(load(chunks.values + c * chunks.stride + d), all(f.now[c - begin]),
                     mul(values, all(f.before[c - begin])));
      store(into.values + d, values);
    }
  }
}

static void finish(Partial done, int head_dim, float* out) {
  const F sum = all(*done.sum);
  for (int d = 0; d < head_dim; d += lanes) store(out + d, div(load(done.values + d), sum));
}

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
