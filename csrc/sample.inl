// The passes of sampling that touch a whole vocabulary, and the noise keyed by (seed, choice, position, token).
//
// Noise is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) mapped to a standard
// Gumbel.  The counter of token t is (t / 64 * 16 + t % 16, position, choice, domain), its word t / 16 % 4, so that 64
// neighbours come from one vector of counters without shuffling.
#pragma once
#include "kernels.h"
#include "math.h"

namespace twostroke {
namespace TWOSTROKE_PATH {

struct Words {
  I word[4];
};

INLINE Words philox(I counter, NoiseKey key) {
  I a = counter, b = all(static_cast<int32_t>(key.position)), c = all(static_cast<int32_t>(key.choice));
  I d = all(int32_t{0x6e6f6973});  // "nois": other uses of a seed would take another domain
  uint32_t k0 = static_cast<uint32_t>(key.seed), k1 = static_cast<uint32_t>(key.seed >> 32);
  for (int round = 0; round < 10; round++) {
    I high0, low0, high1, low1;
    wide_product(a, all(static_cast<int32_t>(0xd2511f53u)), high0, low0);
    wide_product(c, all(static_cast<int32_t>(0xcd9e8d57u)), high1, low1);
    a = bit_xor(bit_xor(high1, b), all(static_cast<int32_t>(k0)));
    c = bit_xor(bit_xor(high0, d), all(static_cast<int32_t>(k1)));
    b = low1, d = low0;
    k0 += 0x9e3779b9u, k1 += 0xbb67ae85u;
  }
  return {{a, b, c, d}};
}

// (w + 1/2) / 2^32, rounded once.
INLINE F unit(I w) {
  const F high = to_float(shift_right<16>(w)), low = to_float(bit_and(w, all(int32_t{0xffff})));
  return mul(fma(high, all(65536.0f), add(low, all(0.5f))), all(0x1p-32f));
}

// -log(-log(u)) of u = (w + 1/2) / 2^32.  Near 1, log(u) is computed from 1 - u = (~w + 1/2) / 2^32, so that the upper
// tail, which decides races, is as fine as the lower.
INLINE F gumbel(I w) {
  const F u = unit(w), rest = unit(bit_xor(w, all(int32_t{-1})));
  F m, e;
  split(u, m, e);
  const F f = select(less(u, root_half()), sub(m, all(1.0f)), sub(all(0.0f), rest));
  return sub(all(0.0f), log(sub(all(0.0f), log_parts(f, e))));
}

constexpr float highest_noise = 23.0f;  // above -log(-log(1 - 2^-33)) = 22.87

INLINE I lane_numbers() {
  const int32_t numbers[lanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return load(numbers);
}

static void noise(NoiseKey key, const int32_t* ids, int count, float* out) {
  for (int i = 0; i < count; i += lanes) {
    const int n = count - i < lanes ? count - i : lanes;
    int32_t block[lanes] = {};
    std::memcpy(block, ids + i, static_cast<size_t>(n) * sizeof(int32_t));
    const I id = load(block), lane = bit_and(id, all(int32_t{15}));
    const Words words = philox(bit_or(shift_left<4>(shift_right<6>(id)), lane), key);
    float all_words[4][lanes];
    for (int w = 0; w < 4; w++) store(all_words[w], gumbel(words.word[w]));
    for (int j = 0; j < n; j++) out[i + j] = all_words[block[j] >> 4 & 3][j];
  }
}

INLINE float group_maximum(const float* x, int n) {
  F highest = all(-__builtin_inff());
  int i = 0;
  for (; i + lanes <= n; i += lanes) highest = max(load(x + i), highest);
  float top = tree_max(highest);
  for (; i < n; i++) top = x[i] > top ? x[i] : top;
  return top;
}

// The largest of each 64 logits; NaN counts as -inf.
static void group_maxima(const float* logits, int count, float* maxima) {
  for (int i = 0; i < count; i += 64) maxima[i / 64] = group_maximum(logits + i, count - i < 64 ? count - i : 64);
}

// exp(logit / temperature - top / temperature), the weight of a token relative to the most likely one.
struct Weigher {
  F temperature, top;
};
INLINE Weigher weigher(float temperature, float top) { return {all(temperature), all(top / temperature)}; }
INLINE F exponent_of(Weigher w, F logit) { return sub(div(logit, w.temperature), w.top); }

INLINE F load_row(const float* p, int n) { return n == lanes ? load(p) : load_some(p, n); }

// argmax(logit / temperature + gumbel) over the candidates that `cut` leaves, ties to the lowest id.  `least` is a
// score that is known to be reached: a group that cannot reach it draws no noise.
static int draw(const float* logits, int count, const float* maxima, float temperature, NoiseKey key, Cut cut,
                float least) {
  const Weigher w = weigher(temperature, cut.top);
  const F none = all(-__builtin_inff());
  float best = -__builtin_inff();
  int chosen = 0;
  for (int i = 0; i < count; i += 64) {
    const float bound = maxima[i / 64] / temperature + highest_noise;
    if (maxima[i / 64] < cut.logit || bound < least || !(bound > best)) continue;
    const Words words = philox(add(all(int32_t{i / 4}), lane_numbers()), key);
    for (int k = 0; k < 4 && i + k * lanes < count; k++) {
      const int from = i + k * lanes, n = count - from < lanes ? count - from : lanes;
      const F logit = load_row(logits + from, n);
      F score = select(first(n), add(div(logit, w.temperature), gumbel(words.word[k])), none);
      score = select(less(all(cut.logit), logit), score,
                     select(first(cut.id - from + 1), select(at_most(all(cut.logit), logit), score, none), none));
      if (cut.min_p > 0.0f) score = select(at_most(all(cut.min_p), exp(exponent_of(w, logit))), score, none);
      if (!any(less(all(best), score))) continue;
      float scores[lanes];
      store(scores, score);
      for (int j = 0; j < n; j++)
        if (scores[j] > best) best = scores[j], chosen = from + j;
    }
  }
  return chosen;
}

static void weights(const float* logits, int count, float temperature, float top, float* out) {
  const Weigher w = weigher(temperature, top);
  for (int i = 0; i < count; i += lanes) {
    const int n = count - i < lanes ? count - i : lanes;
    const F weight = exp(exponent_of(w, load_row(logits + i, n)));
    n == lanes ? store(out + i, weight) : store_some(out + i, weight, n);
  }
}

// Which slice of 1/8 nat below the top a token lies in, as a whole float; not increasing with its logit.
INLINE F slice(F exponent) {
  const F last = all(static_cast<float>(mass_slices - 1)), depth = mul(exponent, all(-8.0f)), magic = all(0x1.8p23f);
  return sub(add(select(less(depth, last), depth, last), magic), magic);
}

// Adds each token's mass, its weight in units of 2^-40 rounded down, to its slice.  Integers, so no order of adding
// changes a sum.  NaN weighs nothing.
static void slice_masses(const float* logits, int count, float temperature, float top, int64_t* masses) {
  const Weigher w = weigher(temperature, top);
  int64_t tables[4][mass_slices] = {};  // neighbours do not wait for each other's sums
  for (int i = 0; i < count; i += lanes) {
    const int n = count - i < lanes ? count - i : lanes;
    const F exponent = exponent_of(w, load_row(logits + i, n)), weight = exp(exponent);
    const F counted = select(first(n), select(at_most(all(0x1p-40f), weight), weight, all(0.0f)), all(0.0f));
    if (!any(less(all(0.0f), counted))) continue;
    int64_t mass[lanes];
    int32_t slices[lanes];
    store_masses(mass, counted);
    store(slices, bits(add(slice(exponent), all(0x1.8p23f))));
    for (int j = 0; j < lanes; j++) tables[j % 4][slices[j] & (mass_slices - 1)] += mass[j];
  }
  for (int s = 0; s < mass_slices; s++) masses[s] = tables[0][s] + tables[1][s] + tables[2][s] + tables[3][s];
}

// Ids of the tokens of one slice, in order; returns how many.
static int in_slice(const float* logits, int count, float temperature, float top, int wanted, int32_t* ids) {
  const Weigher w = weigher(temperature, top);
  int found = 0;
  for (int i = 0; i < count; i += lanes) {
    const int n = count - i < lanes ? count - i : lanes;
    const F slices = slice(exponent_of(w, load_row(logits + i, n)));
    const F level = all(static_cast<float>(wanted)), other = all(-1.0f);
    const F matching = select(at_most(level, slices), select(at_most(slices, level), level, other), other);
    if (!any(less(other, matching))) continue;
    float matches[lanes];
    store(matches, matching);
    for (int j = 0; j < n; j++) {
      ids[found] = i + j;
      found += matches[j] >= 0.0f;
    }
  }
  return found;
}

// Ids of the logits at or above the threshold, in order; returns how many.
static int at_least(const float* logits, int count, float threshold, int32_t* ids) {
  int found = 0;
  for (int i = 0; i < count; i += lanes) {
    const int n = count - i < lanes ? count - i : lanes;
    if (n == lanes && !any(at_most(all(threshold), load(logits + i)))) continue;
    for (int j = 0; j < n; j++) {
      ids[found] = i + j;
      found += logits[i + j] >= threshold;
    }
  }
  return found;
}

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
