// Everything that is compiled once per instruction set, gathered into its table.
#pragma once
#include "attention.inl"
#include "ops.inl"
#include "sample.inl"

namespace twostroke {
namespace TWOSTROKE_PATH {

static float log_of(float x) { return log(x); }

constexpr Kernels table() {
  return {norm, rotate, silu_mul, add_row, store_cell, load_block, tile_queries, place_query, attend_chunk, merge,
          finish, noise, group_maxima, draw, weights, slice_masses, in_slice, at_least, log_of};
}

}  // namespace TWOSTROKE_PATH
}  // namespace twostroke
