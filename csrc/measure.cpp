// See measure.h.
#include "measure.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "arena.h"

namespace twostroke {
namespace {

template <class F>
std::vector<double> seconds(int repeats, const F& f) {
  std::vector<double> all;
  for (int i = 0; i < repeats; i++) {
    const auto start = std::chrono::steady_clock::now();
    f();
    all.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return all;
}

// Independent sums, so that loads and not additions set the pace.
uint64_t read_all(const uint64_t* p, size_t count) {
  uint64_t sums[16] = {};
  for (size_t i = 0; i + 16 <= count; i += 16)
    for (size_t j = 0; j < 16; j++) sums[j] += p[i + j];
  return std::max(sums[0], *std::max_element(sums, sums + 16));
}

// Numbers between -1 and 1, always the same.
std::vector<float> noise(int64_t count) {
  std::vector<float> x(static_cast<size_t>(count));
  uint32_t state = 1;
  for (float& v : x) v = static_cast<float>(static_cast<int32_t>(state = state * 1664525u + 1013904223u)) * 0x1p-31f;
  return x;
}

using Inputs = std::map<std::pair<Grouping, int64_t>, std::unique_ptr<Activations>>;

const Activations& inputs_for(const Weight& w, int64_t M, Inputs& inputs) {
  auto& x = inputs[{grouping(w), cols(w)}];
  if (!x) {
    x = std::make_unique<Activations>(grouping(w), cols(w), M);
    const std::vector<float> values = noise(M * cols(w));
    for (int64_t m = 0; m < M; m++) x->set_row(m, values.data() + m * cols(w));
  }
  return *x;
}

}  // namespace

std::vector<double> read_bandwidth(Pool& pool, size_t bytes, int repeats) {
  const std::shared_ptr<uint8_t> memory = allocate_weights(bytes);
  std::fill_n(memory.get(), bytes, uint8_t{1});
  const auto* words = reinterpret_cast<const uint64_t*>(memory.get());
  std::vector<uint64_t> sums(static_cast<size_t>(pool.threads()) * 8);  // a cache line each
  std::vector<double> rates = seconds(repeats, [&] {
    pool.run([&](int t, int n) {
      const size_t count = bytes / sizeof(uint64_t), low = count * t / n, high = count * (t + 1) / n;
      sums[static_cast<size_t>(t) * 8] += read_all(words + low, high - low);
    });
  });
  for (double& r : rates) r = static_cast<double>(bytes) / r * 1e-9;
  return rates;
}

std::vector<double> sweep_seconds(Pool& pool, const std::vector<const Weight*>& weights, int64_t M, int repeats) {
  Inputs inputs;
  int64_t widest = 0;
  for (const Weight* w : weights) widest = std::max(widest, rows(*w));
  std::vector<float> out(static_cast<size_t>(M * widest));
  std::vector<Product> products;
  for (const Weight* w : weights) products.push_back({w, &inputs_for(*w, M, inputs), out.data(), rows(*w), nullptr, false});
  return seconds(repeats, [&] {
    for (const Product& p : products) multiply(&p, 1, M, pool);
  });
}

}  // namespace twostroke
