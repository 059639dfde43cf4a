// The row kernels of one path; see kernels.h.
#include "path.inl"

namespace twostroke {
const Kernels kernels_avx2 = path_avx2::table();
}
