#include "program.h"

#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

#include "kernels.h"

namespace twostroke {
namespace {

constexpr int64_t worth_a_dispatch = 8192;  // elements below which one thread is done before the others wake

template <class... Parts>
[[noreturn]] void refuse(const Parts&... parts) {
  std::string text;
  const auto add = [&](const auto& part) {
    if constexpr (std::is_arithmetic_v<std::decay_t<decltype(part)>>)
      text += std::to_string(part);
    else
      text += part;
  };
  (add(parts), ...);
  throw std::invalid_argument(text);
}

struct Unmap {
  size_t bytes;
  void operator()(float* p) const { munmap(p, bytes); }
};
using Mapped = std::unique_ptr<float, Unmap>;

Mapped map_floats(int64_t count) {
  const size_t bytes = static_cast<size_t>(count) * sizeof(float);
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  return Mapped(static_cast<float*>(p), Unmap{bytes});
}

// A row that is quantised at once need not outlive it, so each thread keeps one, which stays in its cache.
float* spare_row(int width) {
  static thread_local std::vector<float> row;
  if (row.size() < static_cast<size_t>(width)) row.resize(width);
  return row.data();
}

}  // namespace

struct Program::Register {
  int width;
  int64_t stride;  // floats from row to row, whole cache lines
  Mapped memory;
};

struct Program::Step {
  const Inputs& inputs;
  std::vector<Run> runs;
  std::vector<int> blocks;  // per row, where its own key and value go
  mutable int rows;         // that operations work on now
};

Program::Program(std::shared_ptr<Pool> pool, int max_rows)
    : pool_(std::move(pool)),
      max_rows_(max_rows),
      scratch_(pool_ ? pool_->threads() : 1),
      vocabulary_(std::numeric_limits<int32_t>::max()),
      context_(std::numeric_limits<int32_t>::max()),
      blocks_(std::numeric_limits<int32_t>::max()) {
  if (!pool_) refuse("a program needs a pool");
  if (max_rows < 1) refuse("max_rows must be at least 1, not ", max_rows);
}

Program::~Program() = default;

// --- Buffers ---

int Program::add_register(int width) {
  if (width < 1) refuse("a register needs a width of at least 1, not ", width);
  const int64_t stride = (static_cast<int64_t>(width) + 15) / 16 * 16;
  registers_.push_back({width, stride, map_floats(stride * max_rows_)});
  return static_cast<int>(registers_.size()) - 1;
}

int Program::add_activations(const Weight& weight) {
  activations_.push_back(std::make_unique<Activations>(grouping(weight), cols(weight), max_rows_));
  activation_shapes_.emplace_back(grouping(weight), cols(weight));
  return static_cast<int>(activations_.size()) - 1;
}

const Program::Register& Program::at(int reg) const {
  if (reg < 0 || reg >= static_cast<int>(registers_.size()))
    refuse("no register ", reg, "; there are ", registers_.size());
  return registers_[reg];
}

int Program::width(int reg) const { return at(reg).width; }
int64_t Program::stride(int reg) const { return at(reg).stride; }
float* Program::row(int reg, int64_t row) const { return at(reg).memory.get() + row * at(reg).stride; }

std::vector<Activations*> Program::activations(const std::vector<int>& quantized, int width) const {
  std::vector<Activations*> found;
  for (int q : quantized) {
    if (q < 0 || q >= static_cast<int>(activations_.size()))
      refuse("no activations ", q, "; there are ", activations_.size());
    if (activation_shapes_[q].second != width)
      refuse("activations ", q, " have ", activation_shapes_[q].second, " columns, the row has ", width);
    found.push_back(activations_[q].get());
  }
  return found;
}

// --- Recording ---

void Program::record(std::string name, std::function<void(const Step&)> perform) {
  operations_.push_back({std::move(name), std::move(perform)});
}

// Splits rows over the threads; `cost` is elements per row.
template <class Body>
void Program::each_row(const Step& step, int64_t cost, const Body& body) const {
  const int64_t rows = step.rows;
  if (rows == 1 || rows * cost < worth_a_dispatch) {
    for (int64_t m = 0; m < rows; m++) body(m);
    return;
  }
  pool_->run([&](int thread, int threads) {
    for (int64_t m = rows * thread / threads; m < rows * (thread + 1) / threads; m++) body(m);
  });
}

// An operation that makes one row of floats at a time, and keeps it (out >= 0) and/or quantises it while it is hot.
void Program::rows_into(std::string name, int width, int out, const std::vector<int>& quantized,
                        std::function<void(int64_t, float*)> make) {
  if (out >= 0 && at(out).width != width)
    refuse(name, " makes rows of ", width, ", register ", out, " holds rows of ", at(out).width);
  if (out < 0 && quantized.empty()) refuse(name, " needs a register or activations to write");
  const auto sinks = activations(quantized, width);
  record(std::move(name), [this, out, width, sinks, make = std::move(make)](const Step& step) {
    each_row(step, width, [&](int64_t m) {
      float* row = out >= 0 ? this->row(out, m) : spare_row(width);
      make(m, row);
      for (Activations* sink : sinks) sink->set_row(m, row);
    });
  });
}

void Program::embed(std::shared_ptr<Weight> weight, int out) {
  if (gathered_) refuse("embed must come before gather");
  if (at(out).width != cols(*weight))
    refuse("the table has rows of ", cols(*weight), ", register ", out, " of ", at(out).width);
  vocabulary_ = std::min(vocabulary_, rows(*weight));
  record("embed", [this, weight, out](const Step& step) {
    each_row(step, width(out), [&](int64_t m) { dequantize_row(*weight, step.inputs.tokens[m], row(out, m)); });
  });
}

void Program::norm(int x, Shared gain, float eps, int out, const std::vector<int>& quantized) {
  const int width = at(x).width;
  rows_into("norm", width, out, quantized, [this, x, gain, eps, width](int64_t m, float* to) {
    kernels().norm(row(x, m), gain.get(), eps, width, to);
  });
}

void Program::quantize(int x, const std::vector<int>& quantized) {
  const auto sinks = activations(quantized, at(x).width);
  record("quantize", [this, x, sinks](const Step& step) {
    each_row(step, width(x), [&](int64_t m) {
      for (Activations* sink : sinks) sink->set_row(m, row(x, m));
    });
  });
}

void Program::multiply(const std::vector<ProductPlan>& plans) {
  std::vector<Product> products;
  for (const ProductPlan& p : plans) {
    const Weight& w = *p.weight;
    const Activations* x = activations({p.x}, static_cast<int>(cols(w)))[0];
    if (activation_shapes_[p.x].first != grouping(w))
      refuse("activations ", p.x, " are grouped for another weight type");
    if (p.column < 0 || p.column + rows(w) > at(p.out).width)
      refuse("columns ", p.column, " to ", p.column + rows(w), " do not fit register ", p.out, " of width ",
             at(p.out).width);
    products.push_back({&w, x, at(p.out).memory.get() + p.column, at(p.out).stride, p.bias.get(), p.add});
  }
  record("multiply", [this, plans, products](const Step& step) {
    twostroke::multiply(products.data(), products.size(), step.rows, *pool_);
  });
}

void Program::check_heads(const Heads& h) const {
  if (gathered_) refuse("attention must come before gather");
  if (h.layer < 0 || h.layer >= h.store->layers) refuse("no layer ", h.layer, " in a store of ", h.store->layers);
  if (h.heads < 1 || h.heads % h.store->kv_heads)
    refuse(h.heads, " query heads cannot share ", h.store->kv_heads, " kv heads");
  const int needed = (h.heads + 2 * h.store->kv_heads) * h.store->head_dim;
  if (at(h.qkv).width != needed)
    refuse("a row of queries, keys and values has ", needed, " floats, register ", h.qkv, " has ", at(h.qkv).width);
}

void Program::rope_store(const Heads& h, const Rotation& rotation, Shared query_gain, Shared key_gain, float eps) {
  check_heads(h);
  if (rotation.half < 1 || 2 * rotation.half > h.store->head_dim)
    refuse("a rotation of ", 2 * rotation.half, " dimensions does not fit heads of ", h.store->head_dim);
  context_ = std::min<int64_t>(context_, rotation.context);
  blocks_ = std::min(blocks_, h.store->blocks);
  const int dim = h.store->head_dim, kv_heads = h.store->kv_heads;
  record("rope_store", [=, this_ = this](const Step& step) {
    const Kernels& k = kernels();
    this_->each_row(step, this_->width(h.qkv), [&](int64_t m) {
      const int position = step.inputs.positions[m];
      const int64_t entry = static_cast<int64_t>(position) * rotation.half;
      float* head = this_->row(h.qkv, m);
      for (int i = 0; i < h.heads + kv_heads; i++, head += dim) {
        const Shared& gain = i < h.heads ? query_gain : key_gain;
        if (gain) k.norm(head, gain.get(), eps, dim, head);
        k.rotate(head, rotation.cos.get() + entry, rotation.sin.get() + entry, rotation.half, rotation.interleaved);
      }
      const float *keys = head - kv_heads * dim, *values = head;
      for (int i = 0; i < kv_heads; i++)
        k.store_cell(h.store->head(h.layer, step.blocks[m], i), h.store->type, dim, position % block_tokens,
                     keys + i * dim, values + i * dim);
    });
  });
}

void Program::attend(const Heads& h, float scale, int out, const std::vector<int>& quantized) {
  check_heads(h);
  blocks_ = std::min(blocks_, h.store->blocks);
  const int width = h.heads * h.store->head_dim;
  if (out >= 0 && at(out).width != width)
    refuse("attend makes rows of ", width, ", register ", out, " holds rows of ", at(out).width);
  if (out < 0 && quantized.empty()) refuse("attend needs a register or activations to write");
  const int target = out >= 0 ? out : add_register(width);
  const auto sinks = activations(quantized, width);
  record("attend", [this, h, scale, target, sinks, width](const Step& step) {
    const Attention a{h.store.get(), h.layer,       h.heads,        scale,
                      row(h.qkv, 0), stride(h.qkv), row(target, 0), stride(target)};
    twostroke::attend(a, step.runs, scratch_, *pool_);
    each_row(step, width, [&](int64_t m) {
      for (Activations* sink : sinks) sink->set_row(m, row(target, m));
    });
  });
}

void Program::silu_mul(int gate_up, int out, const std::vector<int>& quantized) {
  if (at(gate_up).width % 2)
    refuse("a row of gate and up has an even width, register ", gate_up, " has ", at(gate_up).width);
  const int width = at(gate_up).width / 2;
  rows_into("silu_mul", width, out, quantized, [this, gate_up, width](int64_t m, float* to) {
    const float* gate = row(gate_up, m);
    kernels().silu_mul(gate, gate + width, width, to);
  });
}

void Program::add(int x, int out) {
  if (at(x).width != at(out).width)
    refuse("registers ", x, " and ", out, " differ in width: ", at(x).width, " and ", at(out).width);
  record("add", [this, x, out](const Step& step) {
    each_row(step, width(x), [&](int64_t m) { kernels().add(row(x, m), row(out, m), width(x)); });
  });
}

void Program::gather(int x, int out) {
  if (gathered_) refuse("a program gathers once");
  if (x == out) refuse("gather needs another register than ", x, " to write");
  if (at(x).width != at(out).width)
    refuse("registers ", x, " and ", out, " differ in width: ", at(x).width, " and ", at(out).width);
  gathered_ = true;
  record("gather", [this, x, out](const Step& step) {
    step.rows = step.inputs.samples;
    for (int s = 0; s < step.rows; s++)
      std::memcpy(row(out, s), row(x, step.inputs.sample_rows[s]), sizeof(float) * width(x));
  });
}

// --- Running ---

Program::Step Program::check(const Inputs& in) const {
  if (in.rows < 1 || in.rows > max_rows_) refuse("a run has 1 to ", max_rows_, " rows, not ", in.rows);
  if (in.samples > max_rows_) refuse("a run samples at most ", max_rows_, " rows, not ", in.samples);
  if (in.runs < 1 || in.run_offsets[0] != 0 || in.run_offsets[in.runs] != in.rows)
    refuse("run_offsets must go from 0 to the number of rows, ", in.rows);
  if (in.table_offsets[0] != 0 || in.table_offsets[in.runs] != in.table_entries)
    refuse("table_offsets must go from 0 to the number of block table entries, ", in.table_entries);
  Step step{in, {}, std::vector<int>(in.rows), in.rows};
  for (int r = 0; r < in.runs; r++) {
    const int first = in.run_offsets[r], end = in.run_offsets[r + 1];
    const int table = in.table_offsets[r], table_end = in.table_offsets[r + 1];
    if (first >= end || end > in.rows) refuse("run ", r, " must have rows: run_offsets ", first, " to ", end);
    if (table > table_end || table_end > in.table_entries)
      refuse("run ", r, "'s block table must not shrink: table_offsets ", table, " to ", table_end);
    const Run run{first, end - first, in.positions[first], in.block_tables + table};
    if (run.position < 0) refuse("position ", run.position, " is negative");
    const int64_t positions = static_cast<int64_t>(run.position) + run.rows;
    if (positions > context_) refuse("position ", positions - 1, " is beyond the context of ", context_);
    if (positions > static_cast<int64_t>(table_end - table) * block_tokens)
      refuse("run ", r, " reaches position ", positions - 1, ", beyond its ", table_end - table, " blocks of ",
             block_tokens);
    for (int i = 0; i < (positions + block_tokens - 1) / block_tokens; i++)
      if (run.blocks[i] < 0 || run.blocks[i] >= blocks_)
        refuse("block ", run.blocks[i], " of run ", r, " is not one of the store's ", blocks_);
    for (int m = 0; m < run.rows; m++) {
      if (in.positions[first + m] != run.position + m)
        refuse("position ", in.positions[first + m], " does not follow ", run.position + m - 1, " in run ", r);
      step.blocks[first + m] = run.blocks[(run.position + m) / block_tokens];
    }
    step.runs.push_back(run);
  }
  for (int m = 0; m < in.rows; m++)
    if (in.tokens[m] < 0 || in.tokens[m] >= vocabulary_)
      refuse("token ", in.tokens[m], " is not in the vocabulary of ", vocabulary_);
  for (int s = 0; s < in.samples; s++)
    if (in.sample_rows[s] < 0 || in.sample_rows[s] >= in.rows)
      refuse("sample row ", in.sample_rows[s], " is not one of ", in.rows, " rows");
  return step;
}

void Program::run(const Inputs& inputs) {
  const Step step = check(inputs);
  std::lock_guard<std::mutex> lock(turn_);
  execute(step);
}

void Program::execute(const Step& step) {
  using Clock = std::chrono::steady_clock;
  for (Operation& operation : operations_) {
    if (step.rows == 0) return;
    const auto start = profiling_ ? Clock::now() : Clock::time_point{};
    operation.perform(step);
    if (profiling_) operation.seconds += std::chrono::duration<double>(Clock::now() - start).count();
  }
}

void Program::set_profiling(bool on) {
  profiling_ = on;
  for (Operation& operation : operations_) operation.seconds = 0;
}

std::vector<std::pair<std::string, double>> Program::profile() const {
  std::vector<std::pair<std::string, double>> times;
  for (const Operation& operation : operations_) times.emplace_back(operation.name, operation.seconds);
  return times;
}

}  // namespace twostroke
