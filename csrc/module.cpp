// The extension module: each part of the kernels binds itself, this file only calls the parts in turn.
#include <nanobind/nanobind.h>

void bind_gemm(nanobind::module_& m);
void bind_program(nanobind::module_& m);
void bind_sample(nanobind::module_& m);

NB_MODULE(_kernels, m) {
  m.doc() = "Row-invariant kernels: packed weights, products, and programs of them.";
  bind_gemm(m);
  bind_program(m);
  bind_sample(m);
}
