// Exponential and logarithm from our own polynomials: the same bits on every machine, unlike a C library's.
//
// Range reduction and coefficients after Cephes (Moshier, expf.c and logf.c); about one unit in the last place.
#pragma once
#include "lanes.h"

namespace twostroke {
namespace TWOSTROKE_PATH {

// e^x = value * 2^(power - 127), the value near 1.
struct Exponential {
  F value;
  I power;
};

INLINE Exponential exp_parts(F x) {
  const F magic = all(0x1.8p23f);  // adding it rounds to an integer, left in the low bits
  const F shifted = fma(x, all(1.44269504088896341f), magic);
  const F n = sub(shifted, magic);
  const F r = fma(n, all(2.12194440e-4f), fma(n, all(-0.693359375f), x));
  F p = all(1.9875691500e-4f);
  p = fma(p, r, all(1.3981999507e-3f));
  p = fma(p, r, all(8.3334519073e-3f));
  p = fma(p, r, all(4.1665795894e-2f));
  p = fma(p, r, all(1.6666665459e-1f));
  p = fma(p, r, all(5.0000001201e-1f));
  return {add(fma(p, mul(r, r), r), all(1.0f)), add(sub(bits(shifted), bits(magic)), all(int32_t{127}))};
}

// e^x of x up to 0; 0 below -86.5, before results turn subnormal.
INLINE F exp_below_one(F x) {
  const Exponential e = exp_parts(x);
  return select(less(x, all(-86.5f)), all(0.0f), mul(e.value, from_bits(shift_left<23>(e.power))));
}

// e^x; 0 below -86.5, infinity above 88.722.
INLINE F exp(F x) {
  const Exponential e = exp_parts(x);
  const F half = from_bits(shift_left<23>(sub(e.power, all(int32_t{1}))));  // for 2^128 is no float
  const F y = mul(mul(e.value, half), all(2.0f));
  const F low = select(less(x, all(-86.5f)), all(0.0f), y);
  return select(less(all(88.722f), x), all(__builtin_inff()), low);
}

// log(m * 2^e) for m = 1 + f, f in [sqrt(1/2) - 1, sqrt(2) - 1].
INLINE F log_parts(F f, F e) {
  const F z = mul(f, f);
  F p = all(7.0376836292e-2f);
  p = fma(p, f, all(-1.1514610310e-1f));
  p = fma(p, f, all(1.1676998740e-1f));
  p = fma(p, f, all(-1.2420140846e-1f));
  p = fma(p, f, all(1.4249322787e-1f));
  p = fma(p, f, all(-1.6668057665e-1f));
  p = fma(p, f, all(2.0000714765e-1f));
  p = fma(p, f, all(-2.4999993993e-1f));
  p = fma(p, f, all(3.3333331174e-1f));
  F y = mul(mul(p, f), z);
  y = fma(e, all(-2.12194440e-4f), y);
  y = fma(z, all(-0.5f), y);
  return fma(e, all(0.693359375f), add(f, y));
}

constexpr int32_t root_half_bits = 0x3f3504f3;
INLINE F root_half() { return from_bits(all(root_half_bits)); }

// x = m * 2^e with m in [sqrt(1/2), sqrt(2)), for positive normal numbers.
INLINE void split(F x, F& m, F& e) {
  const I offset = sub(bits(x), all(root_half_bits));
  const I exponent = sub(shift_right<23>(add(offset, all(int32_t{128} << 23))), all(int32_t{128}));
  m = from_bits(add(bit_and(offset, all(int32_t{0x7fffff})), all(root_half_bits)));
  e = to_float(exponent);
}

// The natural logarithm of positive normal numbers.
INLINE F log(F x) {
  F m, e;
  split(x, m, e);
  return log_parts(sub(m, all(1.0f)), e);
}

INLINE float log(float x) {
  float v[lanes];
  store(v, log(all(x)));
  return v[0];
}

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
