// The choice of a kernel table by the path in use.
#include "kernels.h"

#include "cpu.h"

namespace twostroke {

const Kernels& kernels() {
#if defined(__x86_64__)
  switch (kernel_path()) {
    case Path::portable:
      return kernels_portable;
    case Path::avx2:
      return kernels_avx2;
    default:
      return kernels_avx512;
  }
#elif defined(__aarch64__)
  return kernel_path() == Path::neon ? kernels_neon : kernels_portable;
#else
  return kernels_portable;
#endif
}

}  // namespace twostroke
