#include "sample.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace twostroke {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float lowest = std::numeric_limits<float>::lowest();

struct Candidate {
  float logit;
  int32_t id;
  float weight;  // relative to the most likely token, at the row's temperature
};
using Candidates = std::vector<Candidate>;

bool before(const Candidate& a, const Candidate& b) { return a.logit > b.logit || (a.logit == b.logit && a.id < b.id); }
int64_t mass(const Candidate& c) { return static_cast<int64_t>(c.weight * 0x1p40f); }
int64_t mass(Candidates::const_iterator from, Candidates::const_iterator to) {
  int64_t total = 0;
  for (; from != to; ++from) total += mass(*from);
  return total;
}

// One row and its working memory, which is kept by the thread.
class Drawing {
 public:
  Drawing(const float* logits, int count) : logits_(logits), count_(count) {
    maxima_.resize((count + 63) / 64);
    kernels_.group_maxima(logits, count, maxima_.data());
    top_ = *std::max_element(maxima_.begin(), maxima_.end());
  }

  float top() const { return top_; }

  int32_t first_maximum() const {
    const size_t group = std::find(maxima_.begin(), maxima_.end(), top_) - maxima_.begin();
    for (int i = static_cast<int>(group) * 64; i < count_; i++)
      if (logits_[i] == top_) return i;
    return 0;
  }

  // Every finite logit at or above the threshold, in order of id.
  Candidates at_least(float threshold) const {
    ids_.resize(std::max<size_t>(ids_.size(), count_));
    return candidates(kernels_.at_least(logits_, count_, std::max(threshold, lowest), ids_.data()));
  }

  // The tokens of one slice of mass, in order of id.
  Candidates in_slice(float temperature, int slice) const {
    ids_.resize(std::max<size_t>(ids_.size(), count_));
    return candidates(kernels_.in_slice(logits_, count_, temperature, top_, slice, ids_.data()));
  }

  // The k largest, in no order.  The k-th largest group maximum bounds the k-th largest logit from below.
  Candidates largest(int k) const {
    float bound = lowest;
    if (k <= static_cast<int>(maxima_.size())) {
      auto& sorted = floats_;
      sorted.assign(maxima_.begin(), maxima_.end());
      std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<float>());
      bound = sorted[k - 1];
    }
    Candidates all = at_least(bound);
    if (k < static_cast<int>(all.size())) {
      std::nth_element(all.begin(), all.begin() + k, all.end(), before);
      all.resize(k);
    }
    return all;
  }

  void weigh(Candidates& candidates, float temperature) const {
    floats_.resize(2 * candidates.size());
    float *in = floats_.data(), *out = in + candidates.size();
    for (size_t i = 0; i < candidates.size(); i++) in[i] = candidates[i].logit;
    kernels_.weights(in, static_cast<int>(candidates.size()), temperature, top_, out);
    for (size_t i = 0; i < candidates.size(); i++) candidates[i].weight = out[i];
  }

  std::vector<int64_t> slice_masses(float temperature) const {
    std::vector<int64_t> masses(mass_slices);
    kernels_.slice_masses(logits_, count_, temperature, top_, masses.data());
    return masses;
  }

  int32_t draw(float temperature, NoiseKey key, const Cut& cut) const {
    const int32_t likely = first_maximum();
    float noise;
    kernels_.noise(key, &likely, 1, &noise);
    return kernels_.draw(logits_, count_, maxima_.data(), temperature, key, cut, top_ / temperature + noise);
  }

 private:
  Candidates candidates(int found) const {
    Candidates all(found);
    for (int i = 0; i < found; i++) all[i] = {logits_[ids_[i]], ids_[i], 0.0f};
    return all;
  }

  const Kernels& kernels_ = kernels();
  const float* logits_;
  const int count_;
  float top_;
  static thread_local std::vector<float> maxima_, floats_;
  static thread_local std::vector<int32_t> ids_;
};

thread_local std::vector<float> Drawing::maxima_, Drawing::floats_;
thread_local std::vector<int32_t> Drawing::ids_;

// The last of the most likely candidates that together reach `target`.  Halves the range that holds it until it is
// small: linear, without sorting the rest.
Candidate last_within(Candidates& c, int64_t target) {
  auto from = c.begin(), to = c.end();
  int64_t gathered = 0;
  while (to - from > 32) {
    const auto middle = from + (to - from) / 2;
    std::nth_element(from, middle, to, before);
    const int64_t half = mass(from, middle);
    if (gathered + half >= target) {
      to = middle;
    } else {
      gathered += half;
      from = middle;
    }
  }
  std::sort(from, to, before);
  while (gathered + mass(*from) < target && from + 1 != c.end()) gathered += mass(*from++);
  return *from;
}

int64_t share(float top_p, int64_t total) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(top_p) * static_cast<double>(total)));
}

// The last token that top-p leaves of the whole vocabulary: the slice where the mass is reached, then the token in it.
Candidate nucleus_end(const Drawing& row, float temperature, float top_p) {
  const std::vector<int64_t> masses = row.slice_masses(temperature);
  int64_t missing = share(top_p, std::accumulate(masses.begin(), masses.end(), int64_t{0}));
  int slice = 0;
  while (masses[slice] < missing) missing -= masses[slice++];
  Candidates within = row.in_slice(temperature, slice);
  row.weigh(within, temperature);
  return last_within(within, missing);
}

// The last token that top-k, then top-p leave.
Candidate end_of(const Drawing& row, int count, const SamplingRow& s) {
  const bool some = s.top_k > 0 && s.top_k < count;
  if (!some) return s.top_p < 1.0f ? nucleus_end(row, s.temperature, s.top_p) : Candidate{lowest, count, 0.0f};
  Candidates kept = row.largest(s.top_k);
  if (s.top_p >= 1.0f) return *std::max_element(kept.begin(), kept.end(), before);
  row.weigh(kept, s.temperature);
  return last_within(kept, share(s.top_p, mass(kept.begin(), kept.end())));
}

}  // namespace

int32_t sample(const float* logits, int count, const SamplingRow& s) {
  const Drawing row(logits, count);
  if (s.temperature < greedy_below || !std::isfinite(row.top())) return row.first_maximum();
  const Candidate end = end_of(row, count, s);
  return row.draw(s.temperature, s.key, {end.logit, end.id, s.min_p, row.top()});
}

std::pair<float, Ranked> logprobs(const float* logits, int count, int32_t chosen, int top) {
  const Drawing row(logits, count);
  const std::vector<int64_t> masses = row.slice_masses(1.0f);
  const int64_t sum = std::accumulate(masses.begin(), masses.end(), int64_t{0});
  const float total = kernels().log(static_cast<float>(static_cast<double>(sum) * 0x1p-40));
  const auto logprob = [&](float logit) { return logit == logit ? logit - row.top() - total : -infinity; };
  Candidates best = top > 0 ? row.largest(top) : Candidates();
  std::sort(best.begin(), best.end(), before);
  Ranked ranked;
  for (const Candidate& c : best) ranked.emplace_back(c.id, logprob(c.logit));
  return {logprob(logits[chosen]), ranked};
}

}  // namespace twostroke
