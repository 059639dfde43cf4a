// The products with AMX: 16 rows of outputs against up to 16 activation rows in one tile product.
//
// Codes are unpacked to bytes in a buffer of L1 size, tile products leave exact sums in a ring of small buffers, and AVX-512
// combines them as gemm_avx512.cpp does.  The tile product of one unit runs while the sums of an earlier one are combined.
//
// For the K types a tile product spans the whole super-block: code times sub-block scale is split into two bytes,
// scale = 8 * high + low for the types with minimums (code * low and code * high fit a byte each),
// (code - 32) * scale = 256 * high + low for Q6_K, and the two exact sums are joined.
#include "quantize_row.h"
#include "simd512.h"

namespace twostroke {
namespace {

constexpr int64_t fewest_rows = 5;    // below this AVX-512 is faster
constexpr int64_t most_rows = 256;    // rows of a pass, bounded also by what fits the L2 cache
constexpr int64_t cached_bytes = 1 << 20;
constexpr int near = 4096;  // bytes ahead that are fetched to L1: unpacking, alone, is fast

// Tile registers: the intrinsics paste their numbers into assembly, so these are macros.
#define SUM_0 0
#define SUM_1 1
#define ACTIVATIONS 4
#define WEIGHTS_0 5
#define WEIGHTS_1 6

// The intrinsics do not tell the compiler which memory they read: before them, all of it must be written.
inline void settle(const void* p) { __asm__ volatile("" : : "r"(p) : "memory"); }

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// Sums are rows x 16 integers, activations rows x `depth` bytes, weights depth / 4 quads of 64 bytes.
void configure(int rows, int depth) {
  TileConfig c;
  for (int t = SUM_0; t <= SUM_1; t++) c.rows[t] = static_cast<uint8_t>(rows), c.row_bytes[t] = 64;
  c.rows[ACTIVATIONS] = static_cast<uint8_t>(rows), c.row_bytes[ACTIVATIONS] = static_cast<uint16_t>(depth);
  for (int t = WEIGHTS_0; t <= WEIGHTS_1; t++) c.rows[t] = static_cast<uint8_t>(depth / 4), c.row_bytes[t] = 64;
  settle(&c);
  _tile_loadconfig(&c);
}

// Rows of one pass in equal blocks of at most 16, rounded up to a multiple of `unit`; what lies past the last row is
// computed from padding and never stored.
struct Blocks {
  int64_t first, rows;
  int height;
  int64_t count() const { return (rows + height - 1) / height; }
};

Blocks blocks_of(int64_t first, int64_t rows, int unit) {
  const int64_t count = (rows + tile_rows - 1) / tile_rows, even = (rows + count - 1) / count;
  return {first, rows, static_cast<int>((even + unit - 1) / unit * unit)};
}

struct Scratch {
  alignas(64) uint8_t panel[16 * 1024];         // unpacked codes of 256 inputs, one or two planes
  alignas(64) int32_t sums[4][2][tile_rows][16];
  alignas(64) float acc[most_rows + tile_rows][16];
};

Scratch& scratch() {
  static thread_local Scratch s;
  return s;
}

// ---- Types with groups of 32 ----

constexpr int groups_per_pass = 8;

template <Type T>
TWOSTROKE_INLINE const uint8_t* unpacked(const uint8_t* body, int count, uint8_t* panel) {
  if constexpr (T == Type::q8_0) return body;
  constexpr int offset = T == Type::q4_0 ? 8 : T == Type::q5_0 ? 16 : 0;
  for (int g = 0; g < count; g++, body += unit_bytes(T)) {
    __m512i w[8];
    prefetch<unit_bytes(T), near, _MM_HINT_T0>(body);
    unpack<T>(body, w);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++)
      _mm512_store_si512(panel + g * byte_bytes + i * line, offset ? _mm512_sub_epi8(w[i], _mm512_set1_epi8(offset)) : w[i]);
  }
  return panel;
}

TWOSTROKE_INLINE void g32_product(const int8_t* a, int64_t pitch, const uint8_t* quads, int slot, Scratch& t) {
  _tile_loadd(ACTIVATIONS, a, pitch);
  if (slot & 1) {
    _tile_zero(SUM_1);
    _tile_loadd(WEIGHTS_1, quads, line);
    _tile_dpbssd(SUM_1, ACTIVATIONS, WEIGHTS_1);
    _tile_stored(SUM_1, t.sums[slot], 64);
  } else {
    _tile_zero(SUM_0);
    _tile_loadd(WEIGHTS_0, quads, line);
    _tile_dpbssd(SUM_0, ACTIVATIONS, WEIGHTS_0);
    _tile_stored(SUM_0, t.sums[slot], 64);
  }
}

// Combine one group's sums with the outputs of a block, held in registers.
template <Type T, int Height>
TWOSTROKE_INLINE void g32_combine(const Span& s, const int32_t (*sums)[16], const uint8_t* header, int64_t at, __m512 acc[Height]) {
  const __m512 d = load_halves(header);
#pragma GCC unroll 16
  for (int r = 0; r < Height; r++) {
    const int64_t i = at + r * s.groups;
    acc[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(load512(sums[r])), _mm512_mul_ps(d, _mm512_set1_ps(s.x.scale[i])), acc[r]);
    if constexpr (has_minimum(T)) acc[r] = _mm512_fmadd_ps(load_halves(header + 32), _mm512_set1_ps(s.x.scaled_sum[i]), acc[r]);
  }
}

// Groups g .. g + count of one tile against all blocks.
template <Type T, int Height>
void g32_pass(const Span& s, const uint8_t* tile, const Blocks& b, int64_t g, int count, Scratch& t) {
  constexpr int header_bytes = has_minimum(T) ? 64 : 32;
  const uint8_t* quads = unpacked<T>(tile + s.body + g * unit_bytes(T), count, t.panel);
  settle(quads);
  const int units = static_cast<int>(b.count()) * count;
  int issued = 0, issued_group = 0;
  int64_t issued_row = b.first;
  const auto issue = [&] {
    g32_product(s.x.codes + issued_row * s.x.pitch + (g + issued_group) * group_32, s.x.pitch, quads + issued_group * byte_bytes, issued & 3, t);
    issued++;
    if (++issued_group == count) issued_group = 0, issued_row += Height;
  };
  issue();
  if (units > 1) issue();
  for (int64_t block = 0, unit = 0; block < b.count(); block++) {
    const int64_t at = (b.first + block * Height) * s.groups + g;
    __m512 acc[Height];
    for (int r = 0; r < Height; r++) acc[r] = g == 0 ? _mm512_setzero_ps() : _mm512_load_ps(t.acc[block * Height + r]);
    for (int i = 0; i < count; i++, unit++) {
      if (issued < units) issue();
      g32_combine<T, Height>(s, t.sums[unit & 3][0], tile + (g + i) * header_bytes, at + i, acc);
    }
    for (int r = 0; r < Height; r++) _mm512_store_ps(t.acc[block * Height + r], acc[r]);
  }
}

template <Type T, int Height>
void g32_tile(const Span& s, int64_t n, const Blocks& b, Scratch& t) {
  const uint8_t* tile = s.tiles + n * s.stride;
  for (int64_t g = 0; g < s.groups; g += groups_per_pass) {
    const int64_t left = s.groups - g;
    g32_pass<T, Height>(s, tile, b, g, static_cast<int>(left < groups_per_pass ? left : groups_per_pass), t);
  }
}

// ---- The K types ----

// Each row's scale in all four bytes' two halves, from 16 bytes.
TWOSTROKE_INLINE __m512i spread(__m512i v) { return _mm512_or_si512(v, _mm512_slli_epi32(v, 16)); }

// code * (scale & 7) and code * (scale >> 3), both below 256: no carry between the bytes of a 16-bit product.
template <Type T>
TWOSTROKE_INLINE void affine_planes(const uint8_t* body, const uint8_t* scales, uint8_t* panel) {
  for (int j = 0; j < 8; j++, body += unit_bytes(T), panel += byte_bytes) {
    __m512i w[8];
    prefetch<unit_bytes(T), near, _MM_HINT_T0>(body);
    unpack<T>(body, w);
    const __m512i scale = spread(_mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(scales + j * tile_rows))));
    const __m512i low = _mm512_and_si512(scale, _mm512_set1_epi16(7)), high = _mm512_srli_epi16(scale, 3);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      _mm512_store_si512(panel + i * line, _mm512_mullo_epi16(w[i], low));
      _mm512_store_si512(panel + 8 * byte_bytes + i * line, _mm512_mullo_epi16(w[i], high));
    }
  }
}

// (code - 32) * scale in 16 bits, its low bytes to one plane and its signed high bytes to the other.
TWOSTROKE_INLINE void q6_k_planes(const uint8_t* body, uint8_t* panel) {
  const uint8_t* scales = body + 8 * unit_bytes(Type::q6_k);
  const __m512i low_byte = _mm512_set1_epi16(255);
  for (int j = 0; j < 8; j++, body += unit_bytes(Type::q6_k), panel += byte_bytes) {
    __m512i w[8];
    prefetch<unit_bytes(Type::q6_k), near, _MM_HINT_T0>(body);
    unpack<Type::q6_k>(body, w);
    const __m512i pair = _mm512_cvtepi8_epi16(load256(scales + 32 * j));
    const __m512i even = spread(_mm512_and_si512(pair, _mm512_set1_epi32(0xffff))), odd = spread(_mm512_srli_epi32(pair, 16));
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
      const __m512i scale = i < 4 ? even : odd, offset = _mm512_slli_epi16(scale, 5);
      const __m512i first = _mm512_sub_epi16(_mm512_mullo_epi16(_mm512_and_si512(w[i], low_byte), scale), offset);
      const __m512i second = _mm512_sub_epi16(_mm512_mullo_epi16(_mm512_srli_epi16(w[i], 8), scale), offset);
      _mm512_store_si512(panel + i * line, or_and(_mm512_slli_epi16(second, 8), first, low_byte));
      _mm512_store_si512(panel + 8 * byte_bytes + i * line, _mm512_mask_blend_epi8(0xaaaaaaaaaaaaaaaau, _mm512_srli_epi16(first, 8), second));
    }
  }
}

// Sums of both planes over 256 inputs, for one block of rows.
template <Type T>
TWOSTROKE_INLINE void k_product(const int8_t* a, int64_t pitch, const uint8_t* panel, int slot, Scratch& t) {
  _tile_zero(SUM_0);
  _tile_zero(SUM_1);
#pragma GCC unroll 4
  for (int i = 0; i < 4; i++) {
    _tile_loadd(ACTIVATIONS, a + i * 64, pitch);
    _tile_loadd(WEIGHTS_0, panel + i * 1024, line);
    _tile_loadd(WEIGHTS_1, panel + 4096 + i * 1024, line);
    _tile_dpbsud(SUM_0, ACTIVATIONS, WEIGHTS_0);
    if constexpr (T == Type::q6_k)
      _tile_dpbssd(SUM_1, ACTIVATIONS, WEIGHTS_1);
    else
      _tile_dpbsud(SUM_1, ACTIVATIONS, WEIGHTS_1);
  }
  _tile_stored(SUM_0, t.sums[slot][0], 64);
  _tile_stored(SUM_1, t.sums[slot][1], 64);
}

struct SuperBlock {
  __m512 d, dmin;
  __m512i minimums[4];
};

template <Type T>
TWOSTROKE_INLINE void k_combine(const Span& s, const int32_t (*sums)[tile_rows][16], const SuperBlock& w, int64_t m, int64_t g, int64_t rows, float (*acc)[16]) {
  for (int64_t r = 0; r < rows; r++) {
    const int64_t i = (m + r) * s.groups + g;
    const __m512 before = g == 0 ? _mm512_setzero_ps() : _mm512_load_ps(acc[r]);
    const __m512i low = load512(sums[0][r]), high = load512(sums[1][r]);
    const __m512i total = _mm512_add_epi32(low, _mm512_slli_epi32(high, T == Type::q6_k ? 8 : 3));
    if constexpr (T == Type::q6_k)
      _mm512_store_ps(acc[r], add_q6_k(before, total, w.d, s.x.scale[i]));
    else
      _mm512_store_ps(acc[r], add_affine(before, total, dot_minimums(w.minimums, s.x.sum32 + i * 8), w.d, w.dmin, s.x.scale[i]));
  }
}

template <Type T>
TWOSTROKE_INLINE SuperBlock k_unpack(const Span& s, const uint8_t* tile, int64_t g, uint8_t* panel) {
  SuperBlock b;
  if constexpr (T == Type::q6_k) {
    q6_k_planes(tile + s.body + g * (8 * unit_bytes(T) + 16 * tile_rows), panel);
    b.d = load_halves(tile + g * 32);
  } else {
    alignas(64) uint8_t scales[8 * tile_rows];
    const uint8_t* body = tile + s.body + g * (8 * unit_bytes(T) + scale_block_bytes);
    const SixBits six = unpack_scale_block(body + 8 * unit_bytes(T));
    _mm512_store_si512(scales, six.scales[0]);
    _mm512_store_si512(scales + 64, six.scales[1]);
    affine_planes<T>(body, scales, panel);
    widen_minimums(six, b.minimums);
    b.d = load_halves(tile + g * 64);
    b.dmin = load_halves(tile + g * 64 + 32);
  }
  return b;
}

template <Type T>
void k_tile(const Span& s, int64_t n, const Blocks& b, Scratch& t) {
  const uint8_t* tile = s.tiles + n * s.stride;
  for (int64_t g = 0; g < s.groups; g++) {
    const SuperBlock w = k_unpack<T>(s, tile, g, t.panel);
    settle(t.panel);
    const int8_t* a = s.x.codes + b.first * s.x.pitch + g * group_256;
    k_product<T>(a, s.x.pitch, t.panel, 0, t);
    for (int64_t block = 0; block < b.count(); block++) {
      const int64_t done = block * b.height, left = b.rows - done;
      if (block + 1 < b.count()) k_product<T>(a + (done + b.height) * s.x.pitch, s.x.pitch, t.panel, (block + 1) & 3, t);
      k_combine<T>(s, t.sums[block & 3], w, b.first + done, g, left < b.height ? left : b.height, t.acc + done);
    }
  }
}

// ---- All types ----

using TileFunction = void (*)(const Span&, int64_t n, const Blocks&, Scratch&);

template <Type T>
TileFunction g32_function(int height) {
  static const TileFunction by_height[] = {g32_tile<T, 4>, g32_tile<T, 8>, g32_tile<T, 12>, g32_tile<T, 16>};
  return by_height[height / 4 - 1];
}

TileFunction tile_function(Type type, int height) {
  switch (type) {
    case Type::q4_0:
      return g32_function<Type::q4_0>(height);
    case Type::q4_1:
      return g32_function<Type::q4_1>(height);
    case Type::q5_0:
      return g32_function<Type::q5_0>(height);
    case Type::q5_1:
      return g32_function<Type::q5_1>(height);
    case Type::q8_0:
      return g32_function<Type::q8_0>(height);
    case Type::q4_k:
      return k_tile<Type::q4_k>;
    case Type::q5_k:
      return k_tile<Type::q5_k>;
    default:
      return k_tile<Type::q6_k>;
  }
}

// One pass over the tiles for a run of rows whose activations fit the cache.
void multiply_rows(const Span& s, int64_t first, int64_t rows, bool super_blocks) {
  const Blocks b = blocks_of(first, rows, super_blocks ? 1 : 4);
  const TileFunction compute = tile_function(s.type, b.height);
  Scratch& t = scratch();
  configure(b.height, super_blocks ? 64 : 32);
  for (int64_t n = s.first; n < s.last; n++) {
    compute(s, n, b, t);
    for (int64_t r = 0; r < rows; r++) store_row(s, n, first + r, _mm512_load_ps(t.acc[r]));
  }
}

int64_t rows_per_pass(const Span& s, int group) {
  const int64_t fitting = cached_bytes / (s.groups * group) / tile_rows * tile_rows;
  return fitting < tile_rows ? tile_rows : fitting < most_rows ? fitting : most_rows;
}

void multiply(const Span& s) {
  if (s.M < fewest_rows || s.x.floats) return gemm_avx512.multiply(s);
  const bool super_blocks = s.type == Type::q4_k || s.type == Type::q5_k || s.type == Type::q6_k;
  const int64_t most = rows_per_pass(s, super_blocks ? group_256 : group_32);
  const int64_t passes = (s.M + most - 1) / most, even = (s.M + passes - 1) / passes;
  for (int64_t first = 0; first < s.M; first += even)
    multiply_rows(s, first, s.M - first < even ? s.M - first : even, super_blocks);
  _tile_release();
}

}  // namespace

const GemmKernels gemm_amx = {multiply, quantize_row_g32, quantize_row_g256};

}  // namespace twostroke
