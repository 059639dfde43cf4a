// Python's view of the packed weights and their products.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "cpu.h"
#include "gemm_kernels.h"
#include "measure.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace twostroke {
namespace {

using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats2 = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Floats1 = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A new array that owns its memory.
template <class T>
auto new_array(std::vector<size_t> shape) {
  size_t count = 1;
  for (size_t n : shape) count *= n;
  T* data = new T[count]();
  nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
  return nb::ndarray<nb::numpy, T>(data, shape.size(), shape.data(), owner);
}

std::shared_ptr<Weight> pack_array(int type, int64_t rows, int64_t cols, Bytes data) {
  nb::gil_scoped_release released;
  return pack(type, rows, cols, data.data(), data.size());
}

auto dequantize(const Weight& w, Indices indices) {
  const size_t n = indices.shape(0), cols = static_cast<size_t>(w.cols);
  auto out = new_array<float>({n, cols});
  float* to = out.data();
  nb::gil_scoped_release released;
  for (size_t i = 0; i < n; i++) dequantize_row(w, indices.data()[i], to + i * cols);
  return out;
}

// Activations that hold the rows of x.
struct Quantized {
  Quantized(Grouping grouping, Floats2 x)
      : activations(grouping, static_cast<int64_t>(x.shape(1)),
                    std::max<int64_t>(static_cast<int64_t>(x.shape(0)), 1)) {
    for (size_t m = 0; m < x.shape(0); m++) activations.set_row(static_cast<int64_t>(m), x.data() + m * x.shape(1));
  }
  Activations activations;
};

auto multiply_arrays(Pool& pool, const Weight& w, Floats2 x, std::optional<Floats1> bias) {
  const int64_t M = static_cast<int64_t>(x.shape(0));
  if (static_cast<int64_t>(x.shape(1)) != w.cols)
    throw std::invalid_argument("x has " + std::to_string(x.shape(1)) + " columns, the weight has " +
                                std::to_string(w.cols));
  if (bias && static_cast<int64_t>(bias->shape(0)) != w.rows)
    throw std::invalid_argument("the bias has " + std::to_string(bias->shape(0)) + " values, the weight has " +
                                std::to_string(w.rows) + " rows");
  auto out = new_array<float>({x.shape(0), static_cast<size_t>(w.rows)});
  float* to = out.data();
  nb::gil_scoped_release released;
  const Quantized a(grouping(w), x);
  const Product product{&w, &a.activations, to, w.rows, bias ? bias->data() : nullptr, false};
  multiply(&product, 1, M, pool);
  return out;
}

auto quantize(Floats2 x, int group) {
  if (group != group_32 && group != group_256)
    throw std::invalid_argument("groups are 32 or 256 wide, not " + std::to_string(group));
  const Quantized a(group == group_32 ? Grouping::g32 : Grouping::g256, x);
  const Rows& r = a.activations.data()->rows;
  const size_t M = x.shape(0), cols = x.shape(1), groups = static_cast<size_t>(r.groups);
  auto codes = new_array<int8_t>({M, cols});
  auto scales = new_array<float>({M, groups});
  for (size_t m = 0; m < M; m++) {
    std::copy_n(r.codes + m * r.pitch, cols, codes.data() + m * cols);
    std::copy_n(r.scale + m * groups, groups, scales.data() + m * groups);
  }
  return nb::make_tuple(codes, scales);
}

}  // namespace
}  // namespace twostroke

void bind_gemm(nb::module_& m) {
  using namespace twostroke;
  m.def("kernel_path", [] { return path_name(kernel_path()); });
  m.def("set_kernel_path", &set_kernel_path, "name"_a);
  m.def("kernel_paths", &supported_paths);
  nb::class_<Pool>(m, "Pool").def(nb::init<int>(), "threads"_a).def_prop_ro("threads", &Pool::threads);
  nb::class_<Weight>(m, "Weight")
      .def_static("pack", &pack_array, "ggml_type"_a, "rows"_a, "cols"_a, "data"_a.noconvert())
      .def_prop_ro("rows", [](const Weight& w) { return w.rows; })
      .def_prop_ro("cols", [](const Weight& w) { return w.cols; })
      .def_prop_ro("type", [](const Weight& w) { return w.format->name; })
      .def_prop_ro("file_bytes", [](const Weight& w) { return file_bytes(w); })
      .def_prop_ro("resident_bytes", [](const Weight& w) { return resident_bytes(w); })
      .def("dequantize", &dequantize, "rows"_a.noconvert());
  m.def("multiply", &multiply_arrays, "pool"_a, "weight"_a, "x"_a.noconvert(), "bias"_a.noconvert() = nb::none());
  m.def("read_bandwidth", &read_bandwidth, "pool"_a, "bytes"_a, "repeats"_a, nb::call_guard<nb::gil_scoped_release>());
  m.def("sweep_seconds", &sweep_seconds, "pool"_a, "weights"_a, "rows"_a, "repeats"_a,
        nb::call_guard<nb::gil_scoped_release>());
  m.def("quantize", &quantize, "x"_a.noconvert(), "group"_a);
}
