// The row kernels of one path; see kernels.h.
#include "path.inl"

namespace twostroke {
const Kernels kernels_avx512 = path_avx512::table();
}
