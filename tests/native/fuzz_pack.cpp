// Packing never reads outside what it is given, refuses what does not fit, and keeps every value.
//
// The oracle reads one value at a time straight from a file's block as ggml defines it, and shares no code with csrc.
// Built by clang this is a libFuzzer target; otherwise a loop over random inputs that takes two of its options.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <vector>

#include "gemm.h"

namespace {

using Bytes = const uint8_t*;

struct Type {
  int number, group, bytes;
  float (*value)(Bytes block, int k);
};

float power(int mantissa, int exponent) { return std::ldexp(static_cast<float>(mantissa), exponent); }

float half(Bytes p) {
  const int h = p[0] | p[1] << 8, exponent = h >> 10 & 31, mantissa = h & 1023;
  const float size = exponent == 31  ? (mantissa ? NAN : INFINITY)
                     : exponent == 0 ? power(mantissa, -24)
                                     : power(mantissa + 1024, exponent - 25);
  return h & 0x8000 ? -size : size;
}

float word(uint32_t bits) {
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

uint32_t u32(Bytes p) { return p[0] | p[1] << 8 | p[2] << 16 | static_cast<uint32_t>(p[3]) << 24; }
int low(Bytes q, int k) { return k < 16 ? q[k] & 15 : q[k - 16] >> 4; }
int fifth(Bytes q, int k) { return static_cast<int>(u32(q) >> k & 1) << 4; }
int sign(uint8_t b) { return b < 128 ? b : b - 256; }

float f32(Bytes b, int) { return word(u32(b)); }
float f16(Bytes b, int) { return half(b); }
float bf16(Bytes b, int) { return word(static_cast<uint32_t>(b[0] | b[1] << 8) << 16); }
float q4_0(Bytes b, int k) { return half(b) * static_cast<float>(low(b + 2, k) - 8); }
float q4_1(Bytes b, int k) { return half(b) * static_cast<float>(low(b + 4, k)) + half(b + 2); }
float q5_0(Bytes b, int k) { return half(b) * static_cast<float>((low(b + 6, k) | fifth(b + 2, k)) - 16); }
float q5_1(Bytes b, int k) { return half(b) * static_cast<float>(low(b + 8, k) | fifth(b + 4, k)) + half(b + 2); }
float q8_0(Bytes b, int k) { return half(b) * static_cast<float>(sign(b[2 + k])); }

// Value k of a K type with minimums: scales at 4, fifth bits (or null), nibbles.
float affine(Bytes b, Bytes bits, Bytes nibbles, int k) {
  const int j = k / 32;
  Bytes s = b + 4;
  const int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
  const int minimum = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
  const int code = (nibbles[j / 2 * 32 + k % 32] >> (j % 2 * 4) & 15) | (bits ? (bits[k % 32] >> j & 1) << 4 : 0);
  const float step = half(b) * static_cast<float>(scale), offset = half(b + 2) * static_cast<float>(minimum);
  return step * static_cast<float>(code) - offset;
}

float q4_k(Bytes b, int k) { return affine(b, nullptr, b + 16, k); }
float q5_k(Bytes b, int k) { return affine(b, b + 16, b + 48, k); }

float q6_k(Bytes b, int k) {
  const int upper = k / 128, part = k % 128 / 32, i = k % 32;
  const int nibble = b[upper * 64 + part % 2 * 32 + i] >> (part / 2 * 4) & 15;
  const int pair = b[128 + upper * 32 + i] >> (2 * part) & 3;
  return half(b + 208) * static_cast<float>(sign(b[192 + k / 16])) * static_cast<float>((nibble | pair << 4) - 32);
}

const Type types[] = {
    {0, 1, 4, f32},      {1, 1, 2, f16},      {30, 1, 2, bf16},      {2, 32, 18, q4_0},
    {3, 32, 20, q4_1},   {6, 32, 22, q5_0},   {7, 32, 24, q5_1},     {8, 32, 34, q8_0},
    {12, 256, 144, q4_k}, {13, 256, 176, q5_k}, {14, 256, 210, q6_k},
};

void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz_pack: %s\n", what);
  std::abort();
}

template <class F>
bool refused(const F& f) {
  try {
    f();
    return false;
  } catch (const std::invalid_argument&) {
    return true;
  }
}

// A shape, and a block of memory of exactly its size so that the sanitizer sees any step outside.
struct Request {
  int number;
  int64_t rows, cols;
  std::vector<uint8_t> data;
};

const Type* known(int number) {
  for (const Type& t : types)
    if (t.number == number) return &t;
  return nullptr;
}

bool fits(const Request& r) {
  const Type* t = known(r.number);
  constexpr int64_t most = 2147483647;
  if (!t || r.rows < 1 || r.cols < 1 || r.rows > most || r.cols > most || r.cols % t->group) return false;
  return static_cast<__int128>(r.rows) * (r.cols / t->group) * t->bytes == static_cast<__int128>(r.data.size());
}

bool same(float a, float b) { return (a != a && b != b) || std::memcmp(&a, &b, sizeof a) == 0; }

void compare(const twostroke::Weight& w, const Request& r) {
  const Type& t = *known(r.number);
  std::unique_ptr<float[]> row(new float[r.cols]);
  for (int64_t n = 0; n < r.rows; n++) {
    twostroke::dequantize_row(w, n, row.get());
    Bytes from = r.data.data() + n * (r.cols / t.group) * t.bytes;
    for (int64_t k = 0; k < r.cols; k++)
      check(same(row[k], t.value(from + k / t.group * t.bytes, static_cast<int>(k % t.group))), "another value");
  }
  for (int64_t n : {int64_t{-1}, r.rows, r.rows + 16, INT64_MIN, INT64_MAX})
    check(refused([&] { twostroke::dequantize_row(w, n, row.get()); }), "a row that is not there");
}

void attempt(const Request& r) {
  std::shared_ptr<twostroke::Weight> w;
  const bool no = refused([&] { w = twostroke::pack(r.number, r.rows, r.cols, r.data.data(), r.data.size()); });
  check(no != fits(r), no ? "a weight that fits was refused" : "a weight that does not fit was taken");
  if (no) return;
  check(twostroke::rows(*w) == r.rows && twostroke::cols(*w) == r.cols, "another shape");
  check(twostroke::file_bytes(*w) == r.data.size(), "another size");
  check(twostroke::resident_bytes(*w) >= r.data.size(), "too little memory");
  compare(*w, r);
}

// Takes an input apart: what is missing counts as zero.
struct Reader {
  Bytes at, end;
  uint8_t byte() { return at < end ? *at++ : 0; }
  int64_t number(int bytes) {
    uint64_t x = 0;
    for (int i = 0; i < bytes; i++) x |= static_cast<uint64_t>(byte()) << (8 * i);
    return static_cast<int64_t>(x);
  }
};

// Three kinds of input: shapes that fit, shapes that nearly do, and anything.
Request request(Reader in) {
  const int kind = in.byte() % 4;
  if (kind == 0) {
    Request r{static_cast<int8_t>(in.byte()), in.number(8), in.number(8), {}};
    r.data.assign(in.at, in.end);
    return r;
  }
  const Type& t = types[in.byte() % (sizeof types / sizeof *types)];
  Request r{t.number, in.byte() % 40 + 1, (in.byte() % 5 + 1) * t.group, {}};
  const int64_t bytes = r.rows * (r.cols / t.group) * t.bytes;
  const int wrong = kind == 1 ? in.byte() % 4 : 0;
  r.data.resize(wrong == 1 ? bytes - 1 : wrong == 2 ? bytes + in.byte() : bytes);
  if (wrong == 3) r.cols += in.byte() % 3 - 1;
  uint32_t mixed = static_cast<uint32_t>(in.number(4));  // a short input goes on as noise of its own
  for (uint8_t& b : r.data) b = in.at < in.end ? in.byte() : (mixed = mixed * 1664525u + 1013904223u) >> 24;
  return r;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attempt(request({data, data + size}));
  return 0;
}

#if !defined(TWOSTROKE_LIBFUZZER)
int main(int argc, char** argv) {
  using Clock = std::chrono::steady_clock;
  int seconds = 60;
  unsigned long long seed = 1;
  for (int i = 1; i < argc; i++)
    check(std::sscanf(argv[i], "-max_total_time=%d", &seconds) == 1 || std::sscanf(argv[i], "-seed=%llu", &seed) == 1,
          "options are -max_total_time=60 and -seed=1");
  const auto end = Clock::now() + std::chrono::seconds(seconds);
  uint64_t state = seed;
  const auto random = [&] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state >> 33);
  };
  long runs = 0;
  for (; Clock::now() < end; runs++) {
    std::vector<uint8_t> input(random() % (random() % 8 ? 64 : 8192));
    for (uint8_t& b : input) b = static_cast<uint8_t>(random() >> 8);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("fuzz_pack: %ld inputs, nothing found\n", runs);
}
#endif
