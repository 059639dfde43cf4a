// Work that threads share out as they go: each takes its own contiguous part from the front, piece by piece, and one
// that is done takes pieces from the back of another's.  A core that others slow down then holds nobody up, and memory
// is still read in long runs.  Who computes a piece never changes what it holds.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "threads.h"

namespace twostroke {

// What is left of one thread's part, as two 32-bit ends in one word.
class alignas(64) Share {
 public:
  void set(uint32_t low, uint32_t high) { ends_.store(pack(low, high), std::memory_order_relaxed); }

  // Calls body(first, last) for pieces of at most `piece`, from the front (or the back), until nothing is left.
  template <class Body>
  void drain(uint32_t piece, bool front, const Body& body) {
    uint64_t ends = ends_.load(std::memory_order_relaxed);
    while (true) {
      const uint32_t low = static_cast<uint32_t>(ends >> 32), high = static_cast<uint32_t>(ends);
      if (low >= high) return;
      const uint32_t taken = std::min(piece, high - low);
      const uint64_t rest = front ? pack(low + taken, high) : pack(low, high - taken);
      if (!ends_.compare_exchange_weak(ends, rest, std::memory_order_relaxed)) continue;
      if (front)
        body(low, low + taken);
      else
        body(high - taken, high);
      ends = ends_.load(std::memory_order_relaxed);
    }
  }

 private:
  static uint64_t pack(uint32_t low, uint32_t high) { return static_cast<uint64_t>(low) << 32 | high; }
  std::atomic<uint64_t> ends_{0};
};

// body(thread, first, last) over disjoint pieces that make up [0, units), on the first `threads` threads of the pool.
template <class Body>
void share_out(Pool& pool, int threads, uint32_t units, uint32_t piece, const Body& body) {
  if (threads <= 1) return body(0, uint32_t{0}, units);
  const std::unique_ptr<Share[]> shares(new Share[threads]);
  const auto border = [&](int t) { return static_cast<uint32_t>(uint64_t{units} * t / threads); };
  for (int t = 0; t < threads; t++) shares[t].set(border(t), border(t + 1));
  pool.run([&](int thread, int) {
    if (thread >= threads) return;
    const auto own = [&](uint32_t first, uint32_t last) { body(thread, first, last); };
    for (int i = 0; i < threads; i++) shares[(thread + i) % threads].drain(piece, i == 0, own);
  });
}

}  // namespace twostroke
