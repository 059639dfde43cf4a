// Everything that is compiled once per instruction set, gathered into its table.
#pragma once
#include "attention.inl"
#include "ops.inl"

namespace twostroke {
namespace TWOSTROKE_PATH {

constexpr Kernels table() {
  return {norm, rotate, silu_mul, add_row, store_cell, load_block, tile_queries, attend_chunk, merge, finish};
}

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
