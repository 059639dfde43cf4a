// What attention asks memory for before it needs it.
//
// Scoring reads keys and spending reads values.  While a chunk is scored its values come in; while they are spent, the
// keys of the chunk after it: memory never rests for long.
#pragma once
#include "kernels.h"
#include "lanes.h"

namespace twostroke {
namespace TWOSTROKE_PATH {

constexpr int cache_line = 64;

// The first `bytes` of each block of the chunk after this one, a cache line with every call.
class Coming {
 public:
  Coming(const ChunkTask& t, int bytes) : block_(t.next), end_(t.next + t.next_blocks), bytes_(bytes) {}

  void fetch() {
    if (block_ == end_) return;
    prefetch(*block_ + at_);
    at_ += cache_line;
    if (at_ >= bytes_) at_ = 0, block_++;
  }

 private:
  const uint8_t* const* block_;
  const uint8_t* const* end_;
  int bytes_, at_ = 0;
};

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
