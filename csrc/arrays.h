// NumPy arrays at the border: judged by dtype, rank and contiguity, never converted or copied behind the caller's back.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace twostroke {

using Array = nanobind::ndarray<nanobind::ro, nanobind::device::cpu>;

template <class T>
inline const char* dtype_name();
template <>
inline const char* dtype_name<float>() {
  return "float32";
}
template <>
inline const char* dtype_name<int32_t>() {
  return "int32";
}
template <>
inline const char* dtype_name<uint64_t>() {
  return "uint64";
}

inline std::string shape_text(const Array& array) {
  std::string text = "[";
  for (size_t i = 0; i < array.ndim(); i++) text += (i ? ", " : "") + std::to_string(array.shape(i));
  return text + "]";
}

// The elements of a C-contiguous array of this dtype and shape (-1: any length); throws std::invalid_argument.
template <class T>
const T* elements(const Array& array, const char* name, const std::vector<int64_t>& shape) {
  const std::string who = std::string(name) + " must be a C-contiguous array of " + dtype_name<T>();
  if (array.dtype() != nanobind::dtype<T>()) throw std::invalid_argument(who);
  bool fits = array.ndim() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); i++)
    fits = shape[i] < 0 || static_cast<int64_t>(array.shape(i)) == shape[i];
  if (!fits) {
    std::string wanted = "[";
    for (size_t i = 0; i < shape.size(); i++)
      wanted += (i ? ", " : "") + (shape[i] < 0 ? "any" : std::to_string(shape[i]));
    throw std::invalid_argument(who + " of shape " + wanted + "], not " + shape_text(array));
  }
  int64_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= static_cast<int64_t>(array.shape(i)))
    if (array.shape(i) > 1 && array.stride(i) != step) throw std::invalid_argument(who + ", not a strided view");
  return reinterpret_cast<const T*>(array.data());
}

inline int length(const Array& array) { return array.ndim() ? static_cast<int>(array.shape(0)) : 0; }

// Elements that keep their array alive; to be dropped while the interpreter is held.
inline std::shared_ptr<const float> kept(const Array& array, const char* name, const std::vector<int64_t>& shape) {
  return {elements<float>(array, name, shape), [array](const float*) {}};
}

// A new NumPy array that owns its elements.
template <class T>
nanobind::ndarray<nanobind::numpy, T> owned(std::vector<T> values, const std::vector<size_t>& shape) {
  auto* kept = new std::vector<T>(std::move(values));
  nanobind::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nanobind::ndarray<nanobind::numpy, T>(kept->data(), shape.size(), shape.data(), owner);
}

}  // namespace twostroke
