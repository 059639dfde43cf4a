// Choosing a token from logits: truncation, keyed noise, and log-probabilities.
//
// The choice is a function of the row, the parameters and the key (seed, choice, position) alone.  It never draws from
// a stream, so a draft's verification draws what decoding would have drawn.
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels.h"

namespace twostroke {

constexpr float greedy_below = 1e-5f;  // temperatures under which a draw is the maximum

struct SamplingRow {
  float temperature;
  int top_k;  // 0: all
  float top_p, min_p;
  NoiseKey key;
};

// One token id out of `count` logits.  NaN counts as -inf; a row without any finite logit gives its first maximum.
//
// Candidates: the top_k largest logits (ties to the lowest id); of those the smallest set of the most likely whose
// probability at this temperature reaches top_p of theirs; of those the ones at least min_p times as likely as the most
// likely.  Then argmax(logit / temperature + gumbel), ties to the lowest id (Gumbel-max, Yellott 1977).
int32_t sample(const float* logits, int count, const SamplingRow& row);

using Ranked = std::vector<std::pair<int32_t, float>>;  // ids and log-probabilities

// Log-probabilities of the unmodified distribution: the `top` most likely, best first, then the chosen one's.
std::pair<float, Ranked> logprobs(const float* logits, int count, int32_t chosen, int top);

}  // namespace twostroke
