// A vector rounded to integers of one step, the largest magnitude being `most` steps.
//
// Codes are x / step to the nearest, ties to even.  A vector with a NaN or an infinity gets codes 0 and step NaN, so
// that every result that reads it is NaN; one below 1e-30 throughout counts as zero (as activations: quantize_row.h).
#pragma once
#include "lanes.h"

namespace twostroke {
namespace TWOSTROKE_PATH {

struct Grid {
  float step, inverse;  // both 0 for zeros
};

// What has to be known of a vector before it can be rounded.
struct Extent {
  F largest = all(0.0f), wrong = all(0.0f);
  void see(F x) {
    largest = max(magnitude(x), largest);
    wrong = add(wrong, sub(x, x));  // NaN for good once x is not finite
  }
};

INLINE Grid grid_of(const Extent& e, float most) {
  constexpr float smallest = 1e-30f;
  if (any(is_nan(e.wrong))) return {__builtin_nanf(""), 0.0f};
  const float top = tree_max(e.largest);
  return top < smallest ? Grid{0.0f, 0.0f} : Grid{top / most, most / top};
}

INLINE Grid grid_of(const float* x, int width, float most) {
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
