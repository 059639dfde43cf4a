// The weight types: how a file stores them and how a tile of 16 output rows stores the same bits.
//
// A tile is a header with the float scales of all its groups, padded to 64 bytes, then one body per group.  Codes lie
// in quads: 64 bytes that hold, for each of 16 rows, the 4 codes of 4 consecutive inputs (one operand of a byte dot
// product, and one row of an AMX tile).  `quads of 32 inputs` are numbered 0..7:
//
//   nibbles      256 bytes per 32 inputs; byte p of 64-byte line i holds quad i (low) and quad i + 4 (high) at position
//   p fifth bits   64 bytes per 32 inputs; bit i of byte p belongs to quad i, position p top pairs    128 bytes per 32
//   inputs; bits 2i, 2i+1 of byte p of line 0 belong to quad i, of line 1 to quad i + 4 bytes        512 bytes per 32
//   inputs; quad after quad, signed
//
//   type         group  header per group   body per group
//   Q4_0, Q4_1     32   d[16] (, m[16])    nibbles
//   Q5_0, Q5_1     32   d[16] (, m[16])    nibbles, fifth bits
//   Q8_0           32   d[16]              bytes
//   Q4_K          256   d[16], dmin[16]    8 x nibbles, scale block
//   Q5_K          256   d[16], dmin[16]    8 x (nibbles, fifth bits), scale block
//   Q6_K          256   d[16]              8 x (nibbles, top pairs), int8 scales [8][16 rows][2]
//   F32 F16 BF16    1   -                  16 values
//
// The scale block packs S (scales, [8 sub-blocks][16 rows]) and N (minimums, [4][16 rows][2]), 6 bits each, in 192
// bytes: line 0 holds the low nibbles of S (S[p] low, S[p + 64] high), line 1 those of N, line 2 the high pairs of
// S[p], S[p + 64], N[p], N[p + 64] from bit 0 up.
#pragma once
#include <cstddef>
#include <cstdint>

#include "gemm.h"

namespace twostroke {

enum class Type : uint8_t { f32, f16, bf16, q4_0, q4_1, q5_0, q5_1, q8_0, q4_k, q5_k, q6_k };

constexpr int tile_rows = 16;
constexpr int nibble_bytes = 256, fifth_bytes = 64, pair_bytes = 128, byte_bytes = 512, scale_block_bytes = 192;

constexpr bool is_float(Type t) { return t == Type::f32 || t == Type::f16 || t == Type::bf16; }
constexpr bool is_five(Type t) { return t == Type::q5_0 || t == Type::q5_1 || t == Type::q5_k; }
constexpr bool has_minimum(Type t) { return t == Type::q4_1 || t == Type::q5_1; }
constexpr bool is_affine(Type t) { return t == Type::q4_k || t == Type::q5_k; }  // with six-bit scales and minimums

// Bytes of a body that hold 32 inputs of the 16 rows.
constexpr int unit_bytes(Type t) {
  return t == Type::q8_0 ? byte_bytes : nibble_bytes + (is_five(t) ? fifth_bytes : t == Type::q6_k ? pair_bytes : 0);
}

struct Format {
  Type type;
  int ggml;  // the file's type number
  const char* name;
  Grouping grouping;
  int group;         // inputs per group
  int file_bytes;    // per group and row
  int header_bytes;  // per group and tile
  int body_bytes;    // per group and tile
};

const Format& format_of(int ggml_type);  // throws std::invalid_argument, listing the known types

}  // namespace twostroke
