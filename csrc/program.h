// One forward pass as a recorded list of operations over registers, run by a single call.
//
// Operations see rows: all rows of the step until `gather`, the sampled ones after it.  Every operation treats a row by
// that row alone (attention: by that row's own earlier positions), so a program is row-invariant because its parts are.
// It knows nothing about architectures: a model is whoever records the list.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "attention.h"
#include "gemm.h"
#include "store.h"
#include "threads.h"

namespace twostroke {

// What one pass computes; arrays belong to the caller.
struct Inputs {
  const int32_t* tokens;     // [rows]
  const int32_t* positions;  // [rows], consecutive inside a run
  int rows;
  const int32_t* run_offsets;  // [runs + 1]: rows of each run
  int runs;
  const int32_t* block_tables;
  int table_entries;
  const int32_t* table_offsets;  // [runs + 1]: entries of each run
  const int32_t* sample_rows;    // [samples]
  int samples;
};

using Shared = std::shared_ptr<const float>;

// Rotation by position: tables [context][half], for the first 2 * half dimensions of a head.
struct Rotation {
  Shared cos, sin;
  int context, half;
  bool interleaved;  // pairs (2i, 2i + 1), else (i, i + half)
};

// A projected row: [heads × d | kv_heads × d | kv_heads × d].
struct Heads {
  int qkv;  // register
  int heads;
  std::shared_ptr<KVStore> store;
  int layer;
};

struct ProductPlan {
  std::shared_ptr<Weight> weight;
  int x;        // activations
  int out;      // register
  int column;   // of the register
  Shared bias;  // may be null
  bool add;
};

// All recording methods throw std::invalid_argument where shapes do not fit.
class Program {
 public:
  Program(std::shared_ptr<Pool> pool, int max_rows);
  ~Program();

  int add_register(int width);
  int add_activations(const Weight& weight);

  void embed(std::shared_ptr<Weight> weight, int out);
  void norm(int x, Shared gain, float eps, int out, const std::vector<int>& quantized);
  void quantize(int x, const std::vector<int>& quantized);
  void multiply(const std::vector<ProductPlan>& products);
  void rope_store(const Heads& heads, const Rotation& rotation, Shared query_gain, Shared key_gain, float eps);
  void attend(const Heads& heads, float scale, int out, const std::vector<int>& quantized);
  void silu_mul(int gate_up, int out, const std::vector<int>& quantized);
  void add(int x, int out);
  void gather(int x, int out);

  void run(const Inputs& inputs);  // throws std::invalid_argument before anything is computed

  int width(int reg) const;
  int64_t stride(int reg) const;
  float* row(int reg, int64_t row) const;
  int max_rows() const { return max_rows_; }

  bool profiling() const { return profiling_; }
  void set_profiling(bool on);
  std::vector<std::pair<std::string, double>> profile() const;

 private:
  struct Register;
  struct Step;
  struct Operation {
    std::string name;
    std::function<void(const Step&)> perform;
    double seconds = 0;
  };

  void record(std::string name, std::function<void(const Step&)> perform);
  const Register& at(int reg) const;
  std::vector<Activations*> activations(const std::vector<int>& quantized, int width) const;
  Step check(const Inputs& inputs) const;
  void check_heads(const Heads& heads) const;
  void execute(const Step& step);
  template <class Body>
  void each_row(const Step& step, int64_t cost, const Body& body) const;
  void rows_into(std::string name, int width, int out, const std::vector<int>& quantized,
                 std::function<void(int64_t, float*)> make);

  std::shared_ptr<Pool> pool_;
  const int max_rows_;
  std::vector<Register> registers_;
  std::vector<std::unique_ptr<Activations>> activations_;
  std::vector<std::pair<Grouping, int64_t>> activation_shapes_;
  std::vector<Operation> operations_;
  AttentionScratch scratch_;
  int64_t vocabulary_, context_;  // the least of all recorded tables
  int blocks_;                    // the least of all stores
  bool gathered_ = false, profiling_ = false;
  std::mutex turn_;  // one run at a time
};

}  // namespace twostroke
