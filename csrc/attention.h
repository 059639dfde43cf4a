// Causal attention of a step's rows over paged keys and values, spread over threads.
//
// The keys of a sequence are split in chunks at fixed absolute positions.  A chunk is loaded once for all rows of a run
// and all query heads that share a kv head; its partial results are merged in order of position.  Who computes a chunk,
// and whether partial results are kept or merged at once, changes nothing in the bits.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels.h"
#include "threads.h"

namespace twostroke {

// Consecutive rows of one sequence.
struct Run {
  int first;  // row of the step
  int rows;
  int position;           // of the first row
  const int32_t* blocks;  // block table, up to the last row's position
};

struct Attention {
  const KVStore* store;
  int layer;
  int heads;
  float scale;
  const float* queries;  // row m at queries + m * query_stride: [heads][head_dim]
  int64_t query_stride;
  float* out;  // row m at out + m * out_stride: [heads][head_dim]
  int64_t out_stride;
};

// Working memory, kept between steps.
class AttentionScratch {
 public:
  explicit AttentionScratch(int threads) : threads_(threads) {}
  std::vector<float>& thread(int t) { return threads_[t]; }
  std::vector<float>& partials() { return partials_; }

 private:
  std::vector<std::vector<float>> threads_;
  std::vector<float> partials_;
};

void attend(const Attention& a, const std::vector<Run>& runs, AttentionScratch& scratch, Pool& pool);

}  // namespace twostroke
