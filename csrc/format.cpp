// The table of weight types; see format.h.
#include "format.h"

#include <stdexcept>
#include <string>

namespace twostroke {
namespace {

constexpr Grouping g32 = Grouping::g32, g256 = Grouping::g256, floats = Grouping::floats;
constexpr int halves = 2 * tile_rows;  // one half per row
constexpr int five_bits = nibble_bytes + fifth_bytes;

const Format formats[] = {
    {Type::f32, 0, "F32", floats, 1, 4, 0, 4 * tile_rows},
    {Type::f16, 1, "F16", floats, 1, 2, 0, 2 * tile_rows},
    {Type::bf16, 30, "BF16", floats, 1, 2, 0, 2 * tile_rows},
    {Type::q4_0, 2, "Q4_0", g32, 32, 18, halves, nibble_bytes},
    {Type::q4_1, 3, "Q4_1", g32, 32, 20, 2 * halves, nibble_bytes},
    {Type::q5_0, 6, "Q5_0", g32, 32, 22, halves, five_bits},
    {Type::q5_1, 7, "Q5_1", g32, 32, 24, 2 * halves, five_bits},
    {Type::q8_0, 8, "Q8_0", g32, 32, 34, halves, byte_bytes},
    {Type::q4_k, 12, "Q4_K", g256, 256, 144, 2 * halves, 8 * nibble_bytes + scale_block_bytes},
    {Type::q5_k, 13, "Q5_K", g256, 256, 176, 2 * halves, 8 * five_bits + scale_block_bytes},
    {Type::q6_k, 14, "Q6_K", g256, 256, 210, halves, 8 * (nibble_bytes + pair_bytes) + 16 * tile_rows},
};

}  // namespace

const Format& format_of(int ggml_type) {
  std::string known;
  for (const Format& f : formats) {
    if (f.ggml == ggml_type) return f;
    known += (known.empty() ? "" : ", ") + std::string(f.name) + " (" + std::to_string(f.ggml) + ")";
  }
  throw std::invalid_argument("unknown weight type " + std::to_string(ggml_type) + "; known are " + known);
}

}  // namespace twostroke
