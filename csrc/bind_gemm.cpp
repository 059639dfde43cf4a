// Python's view of the packed weights and their products.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cpu.h"

namespace nb = nanobind;

void bind_gemm(nb::module_& m) {
  m.def("kernel_path", [] { return twostroke::path_name(twostroke::kernel_path()); }, "The name of the path in use.");
  m.def("set_kernel_path", &twostroke::set_kernel_path, nb::arg("name"), "Force a path; ValueError if this machine lacks it.");
  m.def("kernel_paths", &twostroke::supported_paths, "The paths this machine has, slowest first.");
}
