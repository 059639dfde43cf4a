#include "store.h"

#include <sys/mman.h>

#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "kernels.h"

namespace twostroke {
namespace {

size_t head_bytes(int head_dim, KVType type) {
  const size_t code = by_code(type, [](auto c) { return sizeof c; });
  return 2u * block_tokens * (head_dim * code + sizeof(float));
}

void require(bool held, const char* what, int value) {
  if (!held) throw std::invalid_argument(std::string(what) + ", not " + std::to_string(value));
}

// Keys lie in runs that hold a few elements of each token, values of four tokens side by side.
template <class Code>
void copy_cells(Cells<const Code> from, Cells<Code> to, int head_dim, int tokens) {
  constexpr int together = in_group<Code>(1, 0);
  std::memcpy(to.key_scales(), from.key_scales(), tokens * sizeof(float));
  std::memcpy(to.value_scales(), from.value_scales(), tokens * sizeof(float));
  for (int run = 0; run < block_tokens * head_dim; run += block_tokens * together)
    std::memcpy(to.codes() + run, from.codes() + run, together * tokens * sizeof(Code));
  const int whole = tokens / 4 * 4, values = value_at<Code>(head_dim, 0, 0);
  std::memcpy(to.codes() + values, from.codes() + values, whole * head_dim * sizeof(Code));
  for (int slot = whole; slot < tokens; slot++)
    for (int d = 0; d < head_dim; d++)
      to.codes()[value_at<Code>(head_dim, slot, d)] = from.codes()[value_at<Code>(head_dim, slot, d)];
}

}  // namespace

KVStore::KVStore(int layers_, int blocks_, int kv_heads_, int head_dim_, KVType type_)
    : layers(layers_),
      blocks(blocks_),
      kv_heads(kv_heads_),
      head_dim(head_dim_),
      type(type_),
      head_bytes_(twostroke::head_bytes(head_dim_, type_)),
      memory_(nullptr) {
  require(layers >= 1, "a KV store needs at least 1 layer", layers);
  require(blocks >= 1, "a KV store needs at least 1 block", blocks);
  require(kv_heads >= 1, "a KV store needs at least 1 head", kv_heads);
  require(head_dim >= 16 && head_dim % 16 == 0 && head_dim <= max_head_dim,
          "head_dim must be a multiple of 16 up to 1024", head_dim);
  void* region = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (region == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  madvise(region, bytes(), MADV_HUGEPAGE);
#endif
  memory_ = static_cast<uint8_t*>(region);
}

KVStore::~KVStore() { munmap(memory_, bytes()); }

void KVStore::copy(int source, int target, int tokens) {
  by_code(type, [&](auto code) {
    using Code = decltype(code);
    for (int layer = 0; layer < layers; layer++)
      for (int h = 0; h < kv_heads; h++)
        copy_cells<Code>({head(layer, source, h)}, {head(layer, target, h)}, head_dim, tokens);
  });
}

void KVStore::poison(int block) {
  for (int layer = 0; layer < layers; layer++) std::memset(head(layer, block, 0), 0xff, block_bytes());
}

void KVStore::read(int layer, int block, float* keys, float* values) const {
  const size_t cells = static_cast<size_t>(block_tokens) * head_dim;
  for (int h = 0; h < kv_heads; h++)
    kernels().load_block(head(layer, block, h), type, head_dim, keys + h * cells, values + h * cells);
}

void KVStore::write(int layer, int block, const float* keys, const float* values) {
  for (int h = 0; h < kv_heads; h++)
    for (int slot = 0; slot < block_tokens; slot++) {
      const size_t cell = (static_cast<size_t>(h) * block_tokens + slot) * head_dim;
      kernels().store_cell(head(layer, block, h), type, head_dim, slot, keys + cell, values + cell);
    }
}

}  // namespace twostroke
