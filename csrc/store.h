// Where keys and values lie: one region of fixed cells, addressed by (layer, block, head, slot).
//
// A block holds 16 tokens.  Inside a block each head has its own contiguous part.  Halves: keys transposed,
// [head_dim][16], so that a lane is a key, then values as [16][head_dim].  Bytes are multiplied four at a time, so four
// elements of a key, or of one element of the values four tokens, lie together: 16 key scales, 16 value scales, keys as
// [head_dim / 4][16][4], values as [16 / 4][head_dim][4 tokens].  The store knows nothing about sequences, hashes or
// reuse.
#pragma once
#include <cstddef>
#include <cstdint>

namespace twostroke {

constexpr int block_tokens = 16, max_head_dim = 1024;

enum class KVType : uint8_t {
  f16,  // half precision: keys, then values
  q8,   // int8 with one float scale per token and head
};

// Where an element lies among the bytes of one head's part of a block.
constexpr int byte_key(int slot, int d) { return d / 4 * 4 * block_tokens + 4 * slot + d % 4; }
constexpr int byte_value(int head_dim, int slot, int d) {
  return (block_tokens + slot / 4 * 4) * head_dim + 4 * d + slot % 4;
}

class KVStore {
 public:
  KVStore(int layers, int blocks, int kv_heads, int head_dim,
          KVType type);  // throws std::invalid_argument, std::bad_alloc
  ~KVStore();
  KVStore(const KVStore&) = delete;
  KVStore& operator=(const KVStore&) = delete;

  const int layers, blocks, kv_heads, head_dim;
  const KVType type;

  size_t bytes() const { return block_bytes() * layers * blocks; }
  size_t bytes_per_token() const { return block_bytes() * layers / block_tokens; }
  uint8_t* head(int layer, int block, int head) const {
    return memory_ + (static_cast<size_t>(layer) * blocks + block) * block_bytes() + head_bytes_ * head;
  }

  void copy(int source, int target, int tokens);                      // the first cells, in all layers, bit for bit
  void poison(int block);                                             // fill with NaN, as a recycled cell may be
  void read(int layer, int block, float* keys, float* values) const;  // each [kv_heads][16][head_dim]
  void write(int layer, int block, const float* keys, const float* values);

 private:
  size_t block_bytes() const { return head_bytes_ * kv_heads; }
  const size_t head_bytes_;
  uint8_t* memory_;
};

}  // namespace twostroke
