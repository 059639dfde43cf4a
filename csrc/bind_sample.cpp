// Python's view of sampling.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include <atomic>
#include <cmath>

#include "arrays.h"
#include "sample.h"
#include "threads.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace twostroke;

namespace {

void require(bool held, const char* what, double value) {
  if (!held) throw std::invalid_argument(std::string(what) + ", not " + std::to_string(value));
}

void check(const SamplingRow& row) {
  require(row.temperature >= 0.0f && std::isfinite(row.temperature), "temperature must be 0 or more", row.temperature);
  require(row.top_k >= 0, "top_k must be 0 (all) or more", row.top_k);
  require(row.top_p > 0.0f, "top_p must be above 0", row.top_p);
  require(row.min_p >= 0.0f && row.min_p <= 1.0f, "min_p must be 0 to 1", row.min_p);
}

// Rows of logits: contiguous inside a row, any stride between rows.
struct Logits {
  explicit Logits(const Array& array) {
    const bool fits = array.dtype() == nb::dtype<float>() && array.ndim() == 2 && array.shape(1) > 0 &&
                      (array.shape(1) == 1 || array.stride(1) == 1);
    if (!fits)
      throw std::invalid_argument("logits must be float32 rows [rows, vocabulary], contiguous inside a row, not " +
                                  shape_text(array));
    first = static_cast<const float*>(array.data());
    rows = static_cast<int>(array.shape(0)), vocabulary = static_cast<int>(array.shape(1)), stride = array.stride(0);
  }
  const float* first;
  int rows, vocabulary;
  int64_t stride;
};

nb::ndarray<nb::numpy, int32_t> sample_rows(const Array& logits, const Array& temperature, const Array& top_k,
                                            const Array& top_p, const Array& min_p, const Array& seed,
                                            const Array& choice, const Array& position,
                                            const std::shared_ptr<Pool>& pool) {
  const Logits all(logits);
  const int n = all.rows;
  const auto* t = elements<float>(temperature, "temperature", {n});
  const auto* k = elements<int32_t>(top_k, "top_k", {n});
  const auto* p = elements<float>(top_p, "top_p", {n});
  const auto* m = elements<float>(min_p, "min_p", {n});
  const auto* s = elements<uint64_t>(seed, "seed", {n});
  const auto* c = elements<int32_t>(choice, "choice", {n});
  const auto* at = elements<int32_t>(position, "position", {n});
  std::vector<SamplingRow> rows;
  for (int i = 0; i < n; i++) {
    rows.push_back({t[i], k[i], p[i], m[i], {s[i], static_cast<uint32_t>(c[i]), static_cast<uint32_t>(at[i])}});
    check(rows.back());
  }
  std::vector<int32_t> ids(n);
  {
    nb::gil_scoped_release release;
    std::atomic<int> next{0};
    const auto work = [&](int, int) {
      for (int i; (i = next.fetch_add(1)) < n;) ids[i] = sample(all.first + i * all.stride, all.vocabulary, rows[i]);
    };
    pool&& n > 1 ? pool->run(work) : work(0, 1);
  }
  return owned(std::move(ids), {static_cast<size_t>(n)});
}

nb::ndarray<nb::numpy, float> gumbel(uint64_t seed, uint32_t choice, uint32_t position, const Array& ids) {
  const int n = length(ids);
  const int32_t* tokens = elements<int32_t>(ids, "ids", {n});
  for (int i = 0; i < n; i++) require(tokens[i] >= 0, "token ids must be 0 or more", tokens[i]);
  std::vector<float> noise(n);
  kernels().noise({seed, choice, position}, tokens, n, noise.data());
  return owned(std::move(noise), {static_cast<size_t>(n)});
}

nb::tuple logprobs_of(const Array& logits, int chosen, int top) {
  const float* row = elements<float>(logits, "logits", {-1});
  const int count = length(logits);
  require(chosen >= 0 && chosen < count, "chosen must be a token of the row", chosen);
  require(top >= 0, "top must be 0 or more", top);
  std::pair<float, Ranked> result;
  {
    nb::gil_scoped_release release;
    result = logprobs(row, count, chosen, top);
  }
  std::vector<int32_t> ids;
  std::vector<float> values;
  for (const auto& [id, value] : result.second) ids.push_back(id), values.push_back(value);
  const size_t n = ids.size();
  return nb::make_tuple(result.first, owned(std::move(ids), {n}), owned(std::move(values), {n}));
}

}  // namespace

void bind_sample(nb::module_& m) {
  m.def("sample", &sample_rows, "logits"_a, "temperature"_a, "top_k"_a, "top_p"_a, "min_p"_a, "seed"_a, "choice"_a,
        "position"_a, "pool"_a.none() = nb::none());
  m.def("gumbel", &gumbel, "seed"_a, "choice"_a, "position"_a, "ids"_a);
  m.def("logprobs", &logprobs_of, "logits"_a, "chosen"_a, "top"_a);
}
