// Products in one parallel region: threads share out the weight tiles by bytes.
#include <algorithm>
#include <stdexcept>
#include <string>

#include "cpu.h"
#include "gemm_kernels.h"
#include "share.h"

namespace twostroke {
namespace {

// Below this many bytes of weights a thread is not worth waking; more rows make a byte dearer.
constexpr int64_t bytes_per_thread = 48 << 10;

// What threads take at a time: some pieces each, but none so small that taking it costs.
constexpr int64_t unit = 1024, pieces_per_thread = 16, fewest_bytes = 32 << 10;

int64_t bytes(const Weight& w) { return static_cast<int64_t>(w.stride) * w.tiles; }

void validate(const Product& p, int64_t M) {
  const Activations::Data& x = *p.x->data();
  if (x.cols != p.weight->cols || x.grouping != p.weight->format->grouping)
    throw std::invalid_argument("activations of " + std::to_string(x.cols) + " columns do not fit a " +
                                p.weight->format->name + " weight of " + std::to_string(p.weight->cols) +
                                " columns (or are grouped for another type)");
  if (M < 0 || M > x.capacity)
    throw std::invalid_argument(std::to_string(M) + " rows of activations asked for, " + std::to_string(x.capacity) +
                                " held");
}

Span span(const Product& p, int64_t first, int64_t last, int64_t M) {
  const Weight& w = *p.weight;
  return {w.format->type, w.data.get(),      w.stride, w.body, w.groups, w.rows, first,
          last,           p.x->data()->rows, M,        p.out,  p.stride, p.bias, p.add};
}

// The tiles that begin inside bytes [low, high) of all products laid end to end.
void multiply_part(const Product* products, size_t count, int64_t M, int64_t low, int64_t high) {
  const auto multiply_tiles = gemm_kernels().multiply;
  for (size_t i = 0; i < count; i++) {
    const Weight& w = *products[i].weight;
    const int64_t stride = static_cast<int64_t>(w.stride), end = bytes(w);
    const auto tile = [&](int64_t offset) { return (std::clamp<int64_t>(offset, 0, end) + stride - 1) / stride; };
    const int64_t first = tile(low), last = tile(high);
    if (first < last) multiply_tiles(span(products[i], first, last, M));
    low -= end;
    high -= end;
  }
}

}  // namespace

const GemmKernels& gemm_kernels() {
#if defined(__x86_64__)
  static const GemmKernels* const all[] = {&gemm_portable, &gemm_avx2, &gemm_avx512, &gemm_amx};
  return *all[static_cast<int>(kernel_path())];
#elif defined(__aarch64__)
  return kernel_path() == Path::neon ? gemm_neon : gemm_portable;
#else
  return gemm_portable;
#endif
}

void multiply(const Product* products, size_t count, int64_t M, Pool& pool) {
  int64_t total = 0;
  for (size_t i = 0; i < count; i++) {
    validate(products[i], M);
    total += bytes(*products[i].weight);
  }
  if (M == 0 || total == 0) return;
  const int64_t rows = std::min<int64_t>(M, 16);
  const int threads = static_cast<int>(std::clamp<int64_t>(total * rows / bytes_per_thread, 1, pool.threads()));
  const int64_t piece = std::max(total / (threads * pieces_per_thread), fewest_bytes / rows);
  const int64_t units = (total + unit - 1) / unit;
  share_out(pool, threads, static_cast<uint32_t>(units), static_cast<uint32_t>((piece + unit - 1) / unit),
            [&](int, uint32_t first, uint32_t last) { multiply_part(products, count, M, first * unit, last * unit); });
}

}  // namespace twostroke
