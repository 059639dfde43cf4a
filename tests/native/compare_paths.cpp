// Every kernel path this machine supports must give the bits of the portable one.
//
// Prints one line per path and kind of work with a digest of all results, so that two machines can be compared too.
// The inputs come from one generator and the same everywhere.  A NaN equals a NaN: which of its bits are set is left to
// the processor, and no result depends on it.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "attention.h"
#include "cpu.h"
#include "gemm_kernels.h"
#include "sample.h"

namespace twostroke {
namespace {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint32_t bits() {  // splitmix64
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return static_cast<uint32_t>((z ^ z >> 31) >> 32);
  }
  int below(int n) { return static_cast<int>(bits() % static_cast<uint32_t>(n)); }
  float number() { return static_cast<float>(static_cast<int32_t>(bits())) * 0x1p-30f; }  // -2 to 2
  std::vector<float> numbers(size_t count, float scale = 1.0f) {
    std::vector<float> all(count);
    for (float& x : all) x = number() * scale;
    return all;
  }

 private:
  uint64_t state_;
};

// Everything one kind of work produced, as comparable bits.
class Results {
 public:
  void keep(float x) { all_.push_back(x == x ? bits_of(x) : 0x7fc00000u); }
  void keep(int64_t x) { all_.push_back(static_cast<uint32_t>(x)), all_.push_back(static_cast<uint32_t>(x >> 32)); }
  template <class T>
  void keep(const T* first, size_t count) {
    for (size_t i = 0; i < count; i++) keep_one(first[i]);
  }
  template <class T>
  void keep(const std::vector<T>& x) {
    keep(x.data(), x.size());
  }
  const std::vector<uint32_t>& all() const { return all_; }
  uint64_t digest() const {  // FNV-1a over words
    uint64_t h = 0xcbf29ce484222325u;
    for (uint32_t x : all_) h = (h ^ x) * 0x100000001b3u;
    return h;
  }

 private:
  static uint32_t bits_of(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
  }
  void keep_one(float x) { keep(x); }
  void keep_one(int64_t x) { keep(x); }
  template <class T>
  void keep_one(T x) {
    keep(static_cast<int64_t>(x));
  }
  std::vector<uint32_t> all_;
};

// --- Products ---

constexpr int types[] = {0, 1, 30, 2, 3, 6, 7, 8, 12, 13, 14};  // ggml's numbers

void put_half(Random& random, uint8_t* p) {  // up to 2^-5 in magnitude, now and then subnormal
  const uint32_t exponent = random.below(8) ? 5 + random.below(5) : 0;
  const uint16_t h = static_cast<uint16_t>((random.bits() & 0x83ff) | exponent << 10);
  memcpy(p, &h, sizeof h);
}

// The bytes of a file: any codes and sub-block scales (or one byte everywhere) under sensible float scales.
std::vector<uint8_t> file(const Format& f, int64_t rows, int64_t cols, Random& random, int fill) {
  std::vector<uint8_t> all(static_cast<size_t>(rows * (cols / f.group)) * f.file_bytes);
  for (uint8_t& b : all) b = static_cast<uint8_t>(fill < 0 ? random.bits() >> 24 : fill);
  for (uint8_t* block = all.data(); block < all.data() + all.size(); block += f.file_bytes) {
    const float x = random.number();
    if (f.type == Type::f32) memcpy(block, &x, 4);
    if (f.type == Type::bf16) memcpy(block, reinterpret_cast<const uint8_t*>(&x) + 2, 2);
    if (f.type == Type::f32 || f.type == Type::bf16) continue;
    put_half(random, block + (f.type == Type::q6_k ? 208 : 0));
    if (f.header_bytes == 64) put_half(random, block + 2);
  }
  return all;
}

void multiply_one(const Weight& w, int64_t M, const std::vector<float>& x, bool add, Random& random, Results& out) {
  Activations a(grouping(w), cols(w), M);
  for (int64_t m = 0; m < M; m++) a.set_row(m, x.data() + m * cols(w));
  const std::vector<float> bias = random.numbers(rows(w));
  std::vector<float> to = random.numbers(M * (rows(w) + 3));
  Pool pool(1);
  const Product product{&w, &a, to.data(), rows(w) + 3, add ? bias.data() : nullptr, add};
  multiply(&product, 1, M, pool);
  out.keep(to);  // with what lies between the rows, which must not change
}

void products(Results& out) {
  for (int type : types) {
    Random random(type);
    const Format& f = format_of(type);
    for (int64_t rows : {1, 4, 7, 16, 17, 40})
      for (int64_t groups : {1, 2, 5}) {
        const int64_t cols = groups * f.group;
        const std::vector<uint8_t> bytes = file(f, rows, cols, random, -1);
        const auto w = pack(type, rows, cols, bytes.data(), bytes.size());
        for (int64_t M : {1, 2, 3, 4, 5, 8, 11}) multiply_one(*w, M, random.numbers(M * cols), M % 2, random, out);
      }
  }
}

// The largest sums that an integer register must hold.
void extreme_products(Results& out) {
  for (int type : types) {
    Random random(type);
    const Format& f = format_of(type);
    const int64_t cols = 512, M = 6;
    for (int fill : {0x00, 0x7f, 0x80, 0xff, 0xf0, 0x0f}) {
      if (f.grouping == Grouping::floats) continue;
      const std::vector<uint8_t> bytes = file(f, 20, cols, random, fill);
      const auto w = pack(type, 20, cols, bytes.data(), bytes.size());
      std::vector<float> x(M * cols);
      for (int64_t i = 0; i < M * cols; i++) x[i] = i < cols ? 1 : i < 2 * cols ? -1 : random.below(2) ? 1 : -1;
      multiply_one(*w, M, x, false, random, out);
    }
  }
}

// --- Quantisation ---

void quantised(Results& out) {
  Random random(1);
  for (Grouping grouping : {Grouping::g32, Grouping::g256}) {
    const int64_t cols = 768, M = 12;
    Activations a(grouping, cols, M);
    for (int64_t m = 0; m < M; m++) {
      std::vector<float> x = random.numbers(cols, std::ldexp(1.0f, static_cast<int>(m * 20) - 120));
      if (m % 3 == 1) x[m * 60] = m % 2 ? NAN : -INFINITY;
      if (m % 3 == 2) std::fill(x.begin(), x.begin() + 300, 0.0f);
      a.set_row(m, x.data());
    }
    const Rows& r = a.data()->rows;
    const size_t all = M * r.groups;
    for (int64_t m = 0; m < M; m++) out.keep(r.codes + m * r.pitch, cols);
    out.keep(r.scale, all);
    if (grouping == Grouping::g32) out.keep(r.minus8, all), out.keep(r.scaled_sum, all);
    if (grouping == Grouping::g32) continue;
    out.keep(r.sum32, all * 8), out.keep(r.sum16, all * 16), out.keep(r.minus32, all * 16);
  }
}

// --- Row operations ---

void row_operations(Results& out) {
  Random random(2);
  const Kernels& k = kernels();
  for (int width : {1, 15, 16, 17, 64, 100}) {
    const std::vector<float> x = random.numbers(width, 30.0f), y = random.numbers(width);
    std::vector<float> z = random.numbers(width);
    k.add(x.data(), z.data(), width), out.keep(z);
    k.norm(x.data(), y.data(), 1e-6f, width, z.data()), out.keep(z);
    k.silu_mul(x.data(), y.data(), width, z.data()), out.keep(z);
    std::vector<float> head = random.numbers(2 * width);
    for (bool interleaved : {false, true}) {
      k.rotate(head.data(), x.data(), y.data(), width, interleaved);
      out.keep(head);
    }
  }
}

// Numbers that end up in every corner of exp and log.
void functions(Results& out) {
  Random random(3);
  std::vector<float> x = random.numbers(4096, 60.0f), ones(x.size(), 1.0f), y(x.size());
  const float corners[] = {0.0f,     -0.0f,  INFINITY, -INFINITY, NAN,   88.722f,
                           88.7221f, -86.5f, -86.6f,   1e-30f,    1e30f, -1e30f};
  for (size_t i = 0; i < sizeof corners / sizeof *corners; i++) x[i * 7] = corners[i];
  kernels().silu_mul(x.data(), ones.data(), static_cast<int>(x.size()), y.data());
  out.keep(y);
  kernels().weights(x.data(), static_cast<int>(x.size()), 0.7f, 5.0f, y.data());
  out.keep(y);
  for (float v : x)
    if (v > 1e-20f) out.keep(kernels().log(v));
}

// --- Keys and values ---

void cells(Results& out) {
  Random random(4);
  for (KVType type : {KVType::q16, KVType::q8})
    for (int dim : {16, 48, 128}) {
      KVStore store(1, 1, 2, dim, type);
      const size_t count = 2u * block_tokens * dim;
      std::vector<float> keys = random.numbers(count), values = random.numbers(count, 70000.0f);
      for (size_t i = 0; i < count; i += 5) keys[i] = std::ldexp(keys[i], -random.below(30));
      for (int i = 0; i < 3 * dim; i++) keys[i] *= i < dim ? 0.0f : i < 2 * dim ? 1e-36f : 1e20f;
      values[3] = -INFINITY;
      store.write(0, 0, keys.data(), values.data());
      out.keep(store.head(0, 0, 0), store.bytes());
      store.read(0, 0, keys.data(), values.data());
      out.keep(keys), out.keep(values);
    }
}

void attend_rows(int heads, int kv_heads, int dim, KVType type, Random& random, Results& out) {
  constexpr int blocks = 40, rows = 9, first = 600;
  KVStore store(1, blocks, kv_heads, dim, type);
  store.poison(0);
  std::vector<int32_t> table(blocks - 1);
  for (int b = 1; b < blocks; b++) {
    const size_t count = static_cast<size_t>(kv_heads) * block_tokens * dim;
    const std::vector<float> keys = random.numbers(count), values = random.numbers(count);
    store.write(0, b, keys.data(), values.data());
    table[b - 1] = b;
  }
  const int64_t width = static_cast<int64_t>(heads) * dim;
  const std::vector<float> queries = random.numbers(3 * rows * width);
  std::vector<float> to(queries.size());
  const std::vector<Run> runs = {{0, rows, first, table.data()}, {rows, rows, 0, table.data()},
                                 {2 * rows, rows, 250, table.data()}};
  AttentionScratch scratch(1);
  Pool pool(1);
  attend({&store, 0, heads, 0.3f, queries.data(), width, to.data(), width}, runs, scratch, pool);
  out.keep(to);
}

void attention(Results& out) {
  Random random(5);
  for (KVType type : {KVType::q16, KVType::q8}) {
    attend_rows(4, 4, 16, type, random, out);
    attend_rows(14, 2, 64, type, random, out);
    attend_rows(7, 1, 48, type, random, out);
    attend_rows(5, 1, 1024, type, random, out);
  }
}

// Numbers at their ends in the largest head: the largest sums that an integer register must hold.
void extreme_attention(KVType type, Results& out) {
  constexpr int dim = max_head_dim, positions = 300, heads = 3;
  constexpr int blocks = (positions + block_tokens - 1) / block_tokens;
  Random random(8);
  KVStore store(1, blocks, 1, dim, type);
  std::vector<int32_t> table(blocks);
  for (int b = 0; b < blocks; b++) {
    std::vector<float> keys(block_tokens * dim), values(keys.size());
    for (size_t i = 0; i < keys.size(); i++) keys[i] = 1.0f, values[i] = i / dim % 2 ? 1.0f : random.below(2) ? 1 : -1;
    store.write(0, b, keys.data(), values.data());
    table[b] = b;
  }
  std::vector<float> queries(heads * dim), to(queries.size());
  for (int i = 0; i < heads * dim; i++) queries[i] = i < dim ? 1.0f : i < 2 * dim ? -1.0f : random.below(2) ? 1 : -1;
  const std::vector<Run> runs = {{0, 1, positions - 1, table.data()}};
  AttentionScratch scratch(1);
  Pool pool(1);
  attend({&store, 0, heads, 1.0f, queries.data(), heads * dim, to.data(), heads * dim}, runs, scratch, pool);
  out.keep(to);
}

void extreme_attentions(Results& out) {
  for (KVType type : {KVType::q16, KVType::q8}) extreme_attention(type, out);
}

// --- Sampling ---

void noise(Results& out) {
  Random random(6);
  for (int count : {1, 16, 33, 1000}) {
    std::vector<int32_t> ids(count);
    for (int32_t& id : ids) id = random.below(200000);
    std::vector<float> y(count);
    kernels().noise({random.bits() * 0x100000001ull, random.bits(), random.bits()}, ids.data(), count, y.data());
    out.keep(y);
  }
}

void draws(Results& out) {
  Random random(7);
  for (int count : {1, 16, 65, 1000, 5003})
    for (int i = 0; i < 24; i++) {
      std::vector<float> logits = random.numbers(count, 4.0f);
      if (i % 5 == 4) logits[random.below(count)] = NAN;
      const SamplingRow row{i % 4 ? 0.3f * static_cast<float>(i % 4) : 0.0f, i % 3 * 20, i % 2 ? 0.8f : 1.0f,
                            i % 7 ? 0.0f : 0.1f, {random.bits(), random.bits(), random.bits()}};
      const int32_t chosen = sample(logits.data(), count, row);
      const auto [own, best] = logprobs(logits.data(), count, chosen, 5);
      out.keep(static_cast<int64_t>(chosen)), out.keep(own);
      for (const auto& [id, logprob] : best) out.keep(static_cast<int64_t>(id)), out.keep(logprob);
    }
}

// Equal logits all along a vocabulary: what lies behind the cut must be left out, however far.
void ties(Results& out) {
  const std::vector<float> logits(200, 1.0f);
  for (uint64_t seed = 0; seed < 50; seed++)
    out.keep(static_cast<int64_t>(sample(logits.data(), 200, {1.0f, 3, 1.0f, 0.0f, {seed, 0, 0}})));
}

struct Work {
  const char* name;
  void (*perform)(Results&);
};

const Work works[] = {
    {"products", products},     {"extreme products", extreme_products},
    {"quantisation", quantised}, {"row operations", row_operations},
    {"exp and log", functions}, {"cells", cells},
    {"attention", attention},   {"extreme attention", extreme_attentions},
    {"noise", noise},           {"draws", draws},
    {"ties", ties},
};

Results perform(const Work& work, const std::string& path) {
  set_kernel_path(path);
  Results results;
  work.perform(results);
  std::printf("%-9s %-17s %016llx %zu words\n", path.c_str(), work.name,
              static_cast<unsigned long long>(results.digest()), results.all().size());
  return results;
}

bool equal(const Results& wanted, const Results& got) {
  const auto &a = wanted.all(), &b = got.all();
  for (size_t i = 0; i < a.size() && i < b.size(); i++)
    if (a[i] != b[i]) {
      std::printf("DIFFERENT at word %zu of %zu: %08x, not %08x\n", i, a.size(), b[i], a[i]);
      return false;
    }
  return a.size() == b.size();
}

int compare() {
  bool same = true;
  for (const Work& work : works) {
    const Results wanted = perform(work, "portable");
    for (const std::string& path : supported_paths())
      if (path != "portable") same = equal(wanted, perform(work, path)) && same;
  }
  std::printf("%s\n", same ? "all paths agree" : "PATHS DIFFER");
  return same ? 0 : 1;
}

}  // namespace
}  // namespace twostroke

int main() { return twostroke::compare(); }
