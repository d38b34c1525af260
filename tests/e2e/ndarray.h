// Small arrays with NumPy's meaning of shape and order, and their .npy files, without any code of the client.
#ifndef WARPLINE_TESTS_E2E_NDARRAY_H_
#define WARPLINE_TESTS_E2E_NDARRAY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace warpline {

using Sizes = std::vector<std::int64_t>;

inline std::int64_t Product(const Sizes& sizes) {
  std::int64_t product = 1;
  for (std::int64_t size : sizes) product *= size;
  return product;
}

// The indices of the element that is at `position` in row-major order, and back.
inline Sizes IndicesAt(const Sizes& shape, std::int64_t position) {
  Sizes indices(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; position /= shape[axis]) {
    indices[axis] = position % shape[axis];
  }
  return indices;
}
inline std::size_t PositionOf(const Sizes& shape, const Sizes& indices) {
  std::int64_t position = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) position = position * shape[axis] + indices[axis];
  return static_cast<std::size_t>(position);
}
// In Fortran order, the first axis is the fastest.
inline std::size_t FortranPositionOf(const Sizes& shape, const Sizes& indices) {
  std::int64_t position = 0;
  for (std::size_t axis = shape.size(); axis-- > 0;) position = position * shape[axis] + indices[axis];
  return static_cast<std::size_t>(position);
}

template <typename T>
struct Ndarray {
  Sizes shape;
  std::vector<T> values;  // row-major

  const T& at(const Sizes& indices) const { return values[PositionOf(shape, indices)]; }
  T& at(const Sizes& indices) { return values[PositionOf(shape, indices)]; }
  friend bool operator==(const Ndarray&, const Ndarray&) = default;
};

template <typename T>
Ndarray<T> Zeros(const Sizes& shape) {
  return {shape, std::vector<T>(static_cast<std::size_t>(Product(shape)))};
}

// Small whole numbers in no order, so that sums and products of them are exact.
template <typename T>
Ndarray<T> Numbers(const Sizes& shape, int seed) {
  Ndarray<T> array = Zeros<T>(shape);
  unsigned state = 2654435761u * static_cast<unsigned>(seed);
  for (T& value : array.values) {
    state = 1664525u * state + 1013904223u;
    value = static_cast<T>(static_cast<int>(state >> 24) % 17 - 8);
  }
  return array;
}

// uint16_t stands for bf16, as raw memory.
template <typename T>
const char* DescrOf();
template <>
inline const char* DescrOf<float>() {
  return "<f4";
}
template <>
inline const char* DescrOf<double>() {
  return "<f8";
}
template <>
inline const char* DescrOf<std::int32_t>() {
  return "<i4";
}
template <>
inline const char* DescrOf<std::int64_t>() {
  return "<i8";
}
template <>
inline const char* DescrOf<std::uint16_t>() {
  return "|V2";
}

template <typename T>
std::string ToNpy(const Ndarray<T>& array, bool fortran = false) {
  std::vector<T> stored = array.values;
  for (std::size_t i = 0; fortran && i < stored.size(); ++i) {
    const Sizes indices = IndicesAt(array.shape, static_cast<std::int64_t>(i));
    stored[FortranPositionOf(array.shape, indices)] = array.values[i];
  }
  std::string header = std::string("{'descr': '") + DescrOf<T>() +
                       "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': (";
  for (std::int64_t size : array.shape) header += std::to_string(size) + ",";
  header += "), }\n";
  std::string bytes("\x93NUMPY\1\0", 8);
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  return bytes + header +
         std::string(reinterpret_cast<const char*>(stored.data()), stored.size() * sizeof(T));
}

// Returns the array of a file with elements of this type. Throws at any other file.
template <typename T>
Ndarray<T> FromNpy(const std::string& bytes) {
  if (bytes.size() < 10 || bytes.compare(0, 8, std::string("\x93NUMPY\1\0", 8)) != 0) {
    throw std::runtime_error("not a .npy file of version 1: " + bytes.substr(0, 80));
  }
  const std::size_t size = static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  const std::string header = bytes.substr(10, size);
  if (header.find(std::string("'descr': '") + DescrOf<T>() + "'") == std::string::npos) {
    throw std::runtime_error(std::string("not ") + DescrOf<T>() + ": " + header);
  }
  Ndarray<T> array;
  const std::size_t open = header.find('('), close = header.find(')');
  std::istringstream sizes(header.substr(open + 1, close - open - 1));
  for (std::string text; std::getline(sizes, text, ',');) {
    if (text.find_first_of("0123456789") != std::string::npos) array.shape.push_back(std::stoll(text));
  }
  std::vector<T> stored(static_cast<std::size_t>(Product(array.shape)));
  if (bytes.size() - 10 - size != stored.size() * sizeof(T))
    throw std::runtime_error("wrong size: " + header);
  if (!stored.empty()) std::memcpy(stored.data(), bytes.data() + 10 + size, stored.size() * sizeof(T));
  array.values = stored;
  for (std::size_t i = 0; header.find("True") != std::string::npos && i < stored.size(); ++i) {
    const Sizes indices = IndicesAt(array.shape, static_cast<std::int64_t>(i));
    array.values[i] = stored[FortranPositionOf(array.shape, indices)];
  }
  return array;
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_E2E_NDARRAY_H_
