// The table of functions that each instruction set provides.  Plain data only: files compiled for one instruction set
// include this and no standard templates.
#pragma once
#include <cstddef>
#include <cstdint>

#include "weight.h"

namespace twostroke {

// A run of weight tiles times M activation rows.
struct Span {
  Type type;
  const uint8_t* tiles;  // tile 0 of the weight
  size_t stride, body;
  int64_t groups, rows;
  int64_t first, last;  // tiles to compute
  Rows x;
  int64_t M;
  float* out;  // element (0, 0)
  int64_t out_stride;
  const float* bias;
  bool add;
};

// Where the quantised form of one row goes: pointers as in Rows, at that row.
struct QuantizedRow {
  int8_t* codes;
  float* scale;
  int32_t* minus8;
  float* scaled_sum;
  int16_t *sum32, *sum16;
  int32_t* minus32;
};

struct GemmKernels {
  void (*multiply)(const Span&);
  void (*quantize_g32)(const float* x, int64_t groups, const QuantizedRow&);
  void (*quantize_g256)(const float* x, int64_t groups, const QuantizedRow&);
};

extern const GemmKernels gemm_portable;
#if defined(__x86_64__)
extern const GemmKernels gemm_avx2, gemm_avx512, gemm_amx;
#elif defined(__aarch64__)
extern const GemmKernels gemm_neon;
#endif

const GemmKernels& gemm_kernels();  // of the path in use

}  // namespace twostroke
