// From a weight type known at run time to the code compiled for it, and from a number of rows to blocks of known size.
//
// For files of one instruction set: everything has internal linkage, so that no code leaks between them.
#pragma once
#include "gemm_kernels.h"

namespace twostroke {
namespace {

// Products::run<T>(s) for the type of the span.
template <class Products>
void multiply_by_type(const Span& s) {
  static void (*const by_type[])(const Span&) = {
      Products::template run<Type::f32>,  Products::template run<Type::f16>,  Products::template run<Type::bf16>,
      Products::template run<Type::q4_0>, Products::template run<Type::q4_1>, Products::template run<Type::q5_0>,
      Products::template run<Type::q5_1>, Products::template run<Type::q8_0>, Products::template run<Type::q4_k>,
      Products::template run<Type::q5_k>, Products::template run<Type::q6_k>};
  by_type[static_cast<int>(s.type)](s);
}

template <int N>
struct Count {
  static constexpr int value = N;
};

// body(Count<N>, m) for blocks of rows m .. m + N: fours, then what is left.
template <class Body>
inline void in_fours(int64_t rows, const Body& body) {
  int64_t m = 0;
  for (; m + 4 <= rows; m += 4) body(Count<4>{}, m);
  if (rows - m == 3) body(Count<3>{}, m);
  if (rows - m == 2) body(Count<2>{}, m);
  if (rows - m == 1) body(Count<1>{}, m);
}

}  // namespace
}  // namespace twostroke
