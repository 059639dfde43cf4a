// The row kernels of one path; see kernels.h.
#include "path.inl"

namespace twostroke {
const Kernels kernels_portable = path_portable::table();
}
