// Row-invariant products of packed weights with quantised activations.
//
// Every output element is a float combination, in one fixed order that belongs to the weight type, of exact integer dot
// products over groups of the inner dimension.  So it depends on its own activation row alone, whatever the number of
// rows, the tile shape, the instruction set or the number of threads.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "threads.h"

namespace twostroke {

// How a weight type wants its activations: 32-wide groups (Q4_0 Q4_1 Q5_0 Q5_1 Q8_0), 256-wide with sums per 16 or 32
// (Q4_K Q5_K Q6_K), or plain floats (F32 F16 BF16).
enum class Grouping : uint8_t { g32, g256, floats };

// One packed matrix of `rows` outputs (ggml's ne[1]) by `cols` inputs (ggml's ne[0]).
struct Weight;
std::shared_ptr<Weight> pack(int ggml_type, int64_t rows, int64_t cols, const uint8_t* data, size_t bytes);  // throws std::invalid_argument
Grouping grouping(const Weight&);
int64_t rows(const Weight&);
int64_t cols(const Weight&);
size_t file_bytes(const Weight&);  // as in the file
size_t resident_bytes(const Weight&);
void dequantize_row(const Weight&, int64_t row, float* out);  // for embedding lookups; `cols` floats, exactly the file's values

// Quantised (or copied) activations of up to `capacity` rows.
class Activations {
 public:
  Activations(Grouping grouping, int64_t cols, int64_t capacity);
  ~Activations();
  void set_row(int64_t row, const float* x);  // depends on x alone; safe from several threads on different rows
  struct Data;
  Data* data() const { return data_.get(); }

 private:
  std::unique_ptr<Data> data_;
};

// out[m * stride + n] (+)= sum_k weight[n][k] * x[m][k] (+ bias[n]), for m < M.
struct Product {
  const Weight* weight;
  const Activations* x;
  float* out;
  int64_t stride;
  const float* bias;  // may be null
  bool add;           // add to what `out` holds
};

// All products in one parallel region; the threads split the output columns by bytes, each streaming a contiguous part.
void multiply(const Product* products, size_t count, int64_t M, Pool& pool);

}  // namespace twostroke
