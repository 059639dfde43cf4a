// Python's view of the KV store and recorded programs.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>

#include "arrays.h"
#include "program.h"
#include "weight.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace twostroke;

namespace {

using View = nb::ndarray<nb::numpy, float>;
using ProductTuple = std::tuple<std::shared_ptr<Weight>, int, int, int, std::optional<Array>, bool>;

void require(bool held, const std::string& otherwise) {
  if (!held) throw std::invalid_argument(otherwise);
}

// --- KVStore ---

KVType kv_type(const std::string& name) {
  require(name == "q16" || name == "q8", "type must be 'q16' or 'q8', not '" + name + "'");
  return name == "q16" ? KVType::q16 : KVType::q8;
}

void check_block(const KVStore& store, int block) {
  require(block >= 0 && block < store.blocks,
          "block " + std::to_string(block) + " is not one of " + std::to_string(store.blocks));
}

void check_layer(const KVStore& store, int layer) {
  require(layer >= 0 && layer < store.layers,
          "layer " + std::to_string(layer) + " is not one of " + std::to_string(store.layers));
}

void copy_cells(KVStore& store, int source, int target, int tokens) {
  check_block(store, source);
  check_block(store, target);
  require(source != target, "source and target are the same block, " + std::to_string(source));
  require(tokens >= 0 && tokens <= block_tokens, "tokens must be 0 to 16, not " + std::to_string(tokens));
  nb::gil_scoped_release release;
  store.copy(source, target, tokens);
}

nb::tuple read_block(const KVStore& store, int layer, int block) {
  check_layer(store, layer);
  check_block(store, block);
  const std::vector<size_t> shape{static_cast<size_t>(store.kv_heads), block_tokens,
                                  static_cast<size_t>(store.head_dim)};
  std::vector<float> keys(shape[0] * shape[1] * shape[2]), values(keys.size());
  store.read(layer, block, keys.data(), values.data());
  return nb::make_tuple(owned(std::move(keys), shape), owned(std::move(values), shape));
}

void write_block(KVStore& store, int layer, int block, const Array& keys, const Array& values) {
  check_layer(store, layer);
  check_block(store, block);
  const std::vector<int64_t> shape{store.kv_heads, block_tokens, store.head_dim};
  store.write(layer, block, elements<float>(keys, "keys", shape), elements<float>(values, "values", shape));
}

void poison(KVStore& store, std::optional<int> block) {
  if (block) check_block(store, *block);
  for (int b = block.value_or(0); b < (block ? *block + 1 : store.blocks); b++) store.poison(b);
}

// --- Program ---

ProductPlan product_plan(const ProductTuple& tuple) {
  const auto& [weight, x, out, column, bias, add] = tuple;
  return {weight, x, out, column, bias ? kept(*bias, "bias", {rows(*weight)}) : nullptr, add};
}

void multiply_op(Program& program, const std::vector<ProductTuple>& tuples) {
  std::vector<ProductPlan> plans;
  for (const ProductTuple& tuple : tuples) plans.push_back(product_plan(tuple));
  program.multiply(plans);
}

void norm_op(Program& program, int x, const Array& gain, float eps, std::optional<int> out,
             const std::vector<int>& quantized) {
  program.norm(x, kept(gain, "gain", {program.width(x)}), eps, out.value_or(-1), quantized);
}

void rope_store_op(Program& program, int qkv, int heads, std::shared_ptr<KVStore> store, int layer, const Array& cos,
                   const Array& sin, const std::string& pairing, const std::optional<Array>& q_gain,
                   const std::optional<Array>& k_gain, float eps) {
  require(pairing == "norm" || pairing == "neox", "pairing must be 'norm' or 'neox', not '" + pairing + "'");
  const Shared cosines = kept(cos, "cos", {-1, -1});
  const int context = static_cast<int>(cos.shape(0)), half = static_cast<int>(cos.shape(1));
  const Rotation rotation{cosines, kept(sin, "sin", {context, half}), context, half, pairing == "norm"};
  const int dim = store->head_dim;
  const auto gain = [&](const std::optional<Array>& g, const char* name) {
    return g ? kept(*g, name, {dim}) : nullptr;
  };
  program.rope_store({qkv, heads, std::move(store), layer}, rotation, gain(q_gain, "q_gain"), gain(k_gain, "k_gain"),
                     eps);
}

View view(nb::handle self, int reg, int64_t rows) {
  const Program& program = nb::cast<const Program&>(self);
  const size_t shape[] = {static_cast<size_t>(rows), static_cast<size_t>(program.width(reg))};
  const int64_t strides[] = {program.stride(reg), 1};
  return View(program.row(reg, 0), 2, shape, self, strides);
}

View run(nb::handle self, const Array& tokens, const Array& positions, const Array& run_offsets,
         const Array& block_tables, const Array& table_offsets, const Array& sample_rows, int output) {
  Program& program = nb::cast<Program&>(self);
  program.width(output);
  const int rows = length(tokens), runs = length(run_offsets) - 1;
  require(runs >= 1, "run_offsets needs at least one run");
  const Inputs inputs{elements<int32_t>(tokens, "tokens", {-1}),
                      elements<int32_t>(positions, "positions", {rows}),
                      rows,
                      elements<int32_t>(run_offsets, "run_offsets", {-1}),
                      runs,
                      elements<int32_t>(block_tables, "block_tables", {-1}),
                      length(block_tables),
                      elements<int32_t>(table_offsets, "table_offsets", {runs + 1}),
                      elements<int32_t>(sample_rows, "sample_rows", {-1}),
                      length(sample_rows)};
  {
    nb::gil_scoped_release release;
    program.run(inputs);
  }
  return view(self, output, inputs.samples);
}

void bind_store(nb::module_& m) {
  nb::class_<KVStore> store(m, "KVStore");
  store.attr("BLOCK_TOKENS") = block_tokens;
  store
      .def(
          "__init__",
          [](KVStore* self, int layers, int blocks, int kv_heads, int head_dim, const std::string& type) {
            new (self) KVStore(layers, blocks, kv_heads, head_dim, kv_type(type));
          },
          "layers"_a, "blocks"_a, "kv_heads"_a, "head_dim"_a, "type"_a = "q16")
      .def_ro("layers", &KVStore::layers)
      .def_ro("blocks", &KVStore::blocks)
      .def_ro("kv_heads", &KVStore::kv_heads)
      .def_ro("head_dim", &KVStore::head_dim)
      .def_prop_ro("type", [](const KVStore& s) { return s.type == KVType::q16 ? "q16" : "q8"; })
      .def_prop_ro("bytes", &KVStore::bytes)
      .def_prop_ro("bytes_per_token", &KVStore::bytes_per_token)
      .def("copy", &copy_cells, "source"_a, "target"_a, "tokens"_a)
      .def("read", &read_block, "layer"_a, "block"_a)
      .def("write", &write_block, "layer"_a, "block"_a, "keys"_a, "values"_a)
      .def("poison", &poison, "block"_a = nb::none());
}

}  // namespace

void bind_program(nb::module_& m) {
  bind_store(m);
  const auto none = nb::none();
  const std::vector<int> nothing;
  nb::class_<Program>(m, "Program")
      .def(nb::init<std::shared_ptr<Pool>, int>(), "pool"_a, "max_rows"_a)
      .def("register", &Program::add_register, "width"_a)
      .def("activations", &Program::add_activations, "weight"_a)
      .def("embed", &Program::embed, "weight"_a, "out"_a)
      .def("norm", &norm_op, "x"_a, "gain"_a, "eps"_a, "out"_a = none, "quantized"_a = nothing)
      .def("quantize", &Program::quantize, "x"_a, "quantized"_a)
      .def("multiply", &multiply_op, "products"_a)
      .def("rope_store", &rope_store_op, "qkv"_a, "heads"_a, "store"_a, "layer"_a, "cos"_a, "sin"_a, "pairing"_a,
           "q_gain"_a = none, "k_gain"_a = none, "eps"_a = 0.0f)
      .def(
          "attend",
          [](Program& p, int qkv, int heads, std::shared_ptr<KVStore> store, int layer, float scale,
             std::optional<int> out, const std::vector<int>& quantized) {
            p.attend({qkv, heads, std::move(store), layer}, scale, out.value_or(-1), quantized);
          },
          "qkv"_a, "heads"_a, "store"_a, "layer"_a, "scale"_a, "out"_a = none, "quantized"_a = nothing)
      .def(
          "silu_mul",
          [](Program& p, int x, std::optional<int> out, const std::vector<int>& q) {
            p.silu_mul(x, out.value_or(-1), q);
          },
          "gate_up"_a, "out"_a = none, "quantized"_a = nothing)
      .def("add", &Program::add, "x"_a, "out"_a)
      .def("gather", &Program::gather, "x"_a, "out"_a)
      .def("run", &run, "tokens"_a, "positions"_a, "run_offsets"_a, "block_tables"_a, "table_offsets"_a,
           "sample_rows"_a, "output"_a)
      .def(
          "rows", [](nb::handle self, int reg) { return view(self, reg, nb::cast<const Program&>(self).max_rows()); },
          "register"_a)
      .def_prop_rw("profiling", &Program::profiling, &Program::set_profiling)
      .def("profile", &Program::profile);
}
