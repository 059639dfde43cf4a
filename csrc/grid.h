// A vector rounded to integers of one step, as fine as their bounds allow.
//
// Codes are x / step to the nearest, ties to even.  A vector with a NaN or an infinity, or whose magnitudes add up to
// one, gets codes 0 and step NaN, so that every result that reads it is NaN; one below 1e-30 throughout counts as zero.
#pragma once
#include "lanes.h"

namespace twostroke {
namespace TWOSTROKE_PATH {

struct Grid {
  float step, inverse;  // both 0 for zeros
};

// What codes may be at most: each, and all magnitudes together, before they are rounded.
struct Bounds {
  float each, together;
};
constexpr float unbounded = __builtin_inff();

// What has to be known of a vector before it can be rounded.
struct Extent {
  F largest = all(0.0f), sum = all(0.0f);
  void see(F x) { see_magnitude(magnitude(x)); }
  void see_magnitude(F x) {
    largest = max(x, largest);
    sum = add(sum, x);
  }
};

INLINE Grid grid_of(const Extent& e, Bounds most) {
  constexpr float smallest = 1e-30f;
  const float top = tree_max(e.largest), sum = tree_sum(e.sum);
  if (!(sum < unbounded)) return {__builtin_nanf(""), 0.0f};  // or NaN
  if (top < smallest) return {0.0f, 0.0f};
  const float each = most.each / top, together = most.together / sum;
  return together < each ? Grid{sum / most.together, together} : Grid{top / most.each, each};
}

INLINE Grid grid_of(const float* x, int width, Bounds most) {
  Extent extent;
  for (int i = 0; i < width; i += lanes) extent.see(load(x + i));
  return grid_of(extent, most);
}

INLINE I codes(const Grid& grid, F x) {
  const F magic = all(0x1.8p23f);  // adding it leaves the rounded integer in the low bits
  return grid.inverse > 0.0f ? sub(bits(fma(x, all(grid.inverse), magic)), bits(magic)) : all(int32_t{0});
}

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
