// The row kernels of one path; see kernels.h.
#define TWOSTROKE_NEON
#include "path.inl"

namespace twostroke {
const Kernels kernels_neon = path_neon::table();
}
