// Memory for weights: large chunks that the system may back with huge pages, handed out in order.
//
// A chunk lives as long as any weight in it.  Only what is written becomes resident, so a part-used chunk costs little.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace twostroke {

std::shared_ptr<uint8_t> allocate_weights(size_t bytes);  // zeroed, 64-byte aligned; throws std::bad_alloc

}  // namespace twostroke
