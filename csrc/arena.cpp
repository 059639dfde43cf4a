// The chunks behind allocate_weights; see arena.h.
#include "arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

namespace twostroke {
namespace {

constexpr size_t alignment = 64;

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

}  // namespace

#if defined(TWOSTROKE_SANITIZE)

// Each weight alone, so that the address sanitizer knows where it ends.
std::shared_ptr<uint8_t> allocate_weights(size_t bytes) {
  const size_t need = round_up(std::max<size_t>(bytes, 1), alignment);
  auto* p = static_cast<uint8_t*>(std::aligned_alloc(alignment, need));
  if (!p) throw std::bad_alloc();
  std::memset(p, 0, need);
  return {p, std::free};
}

#else

namespace {

constexpr size_t huge_page = size_t{2} << 20, chunk_bytes = size_t{64} << 20;

// Mapped with room to start at a huge page's border; the whole mapping goes away with the last user.
std::shared_ptr<uint8_t> map_chunk(size_t bytes) {
  const size_t mapped = bytes + huge_page;
  void* p = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  std::shared_ptr<void> whole(p, [mapped](void* q) { munmap(q, mapped); });
  auto* start = reinterpret_cast<uint8_t*>(round_up(reinterpret_cast<uintptr_t>(p), huge_page));
#if defined(MADV_HUGEPAGE)
  madvise(start, bytes, MADV_HUGEPAGE);  // advice: without huge pages everything still works
#endif
  return {whole, start};
}

std::mutex mutex;
std::shared_ptr<uint8_t> chunk;
size_t chunk_size = 0, chunk_used = 0;

}  // namespace

std::shared_ptr<uint8_t> allocate_weights(size_t bytes) {
  const size_t need = round_up(std::max<size_t>(bytes, 1), alignment);
  std::lock_guard<std::mutex> lock(mutex);
  if (!chunk || chunk.use_count() == 1 || chunk_size - chunk_used < need) {
    chunk_size = round_up(std::max(need, chunk_bytes), huge_page);
    chunk_used = 0;
    chunk = map_chunk(chunk_size);
  }
  std::shared_ptr<uint8_t> part(chunk, chunk.get() + chunk_used);
  chunk_used += need;
  return part;
}

#endif

}  // namespace twostroke
