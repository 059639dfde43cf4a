// Where keys and values lie: one region of fixed cells, addressed by (layer, block, head, slot).
//
// A vector is stored as integers and what one of them is worth, a float per token and head.  A block holds 16 tokens,
// and inside it each head has its own contiguous part: 16 key scales, 16 value scales, keys, values.  Integers lie in
// groups of 64, four for each of 16 lanes, as attention multiplies them: four elements of the keys of 16 tokens, or 16
// elements of the values of four.  The store knows nothing about sequences, hashes or reuse.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace twostroke {

constexpr int block_tokens = 16, max_head_dim = 1024;

enum class KVType : uint8_t {
  q16,  // int16_t, up to 8191: products with as many bits add up in 32 (dots.h)
  q8,   // int8_t, up to 127
};

// Part of code that is compiled once per instruction set, so no copy may be shared between them.
#define EVERYWHERE __attribute__((always_inline)) inline

// body(Code()) for the integer that a type stores.
template <class Body>
EVERYWHERE auto by_code(KVType type, const Body& body) {
  return type == KVType::q8 ? body(int8_t()) : body(int16_t());
}

constexpr int group_codes = 64;

// Where a lane's number (of four) lies in its group.  Bytes are multiplied by fours, words by pairs: 0 and 2, 1 and 3.
template <class Code>
EVERYWHERE constexpr int in_group(int lane, int number) {
  return sizeof(Code) == 1 ? 4 * lane + number : number % 2 * (group_codes / 2) + 2 * lane + number / 2;
}

// Where an element lies among the integers of one head's part of a block.
template <class Code>
EVERYWHERE constexpr int key_at(int slot, int d) {
  return d / 4 * group_codes + in_group<Code>(slot, d % 4);
}
template <class Code>
EVERYWHERE constexpr int value_at(int head_dim, int slot, int d) {
  return (block_tokens + slot / 4 * 4) * head_dim + d / 16 * group_codes + in_group<Code>(d % 16, slot % 4);
}

// One head's part of a block, to read where Code is const.
template <class Code>
struct Cells {
  template <class T>
  using Like = std::conditional_t<std::is_const_v<Code>, const T, T>;

  Like<uint8_t>* head;
  EVERYWHERE Like<float>* key_scales() const { return reinterpret_cast<Like<float>*>(head); }
  EVERYWHERE Like<float>* value_scales() const { return key_scales() + block_tokens; }
  EVERYWHERE Code* codes() const { return reinterpret_cast<Code*>(value_scales() + block_tokens); }
};

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
