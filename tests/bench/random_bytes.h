// The bytes that the benchmarks of transfers send.
#ifndef WARPLINE_TESTS_BENCH_RANDOM_BYTES_H_
#define WARPLINE_TESTS_BENCH_RANDOM_BYTES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

namespace warpline {

// The same in every process; made once, of the size that is asked for first. A multiple of 8.
inline const std::string& RandomBytes(std::size_t size) {
  static const std::string& bytes = *[size] {
    auto* random = new std::string(size, '\0');
    std::mt19937_64 generator(1);
    for (std::size_t i = 0; i < random->size(); i += 8) {
      const std::uint64_t word = generator();
      std::copy_n(reinterpret_cast<const char*>(&word), 8, random->data() + i);
    }
    return random;
  }();
  return bytes;
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_BENCH_RANDOM_BYTES_H_
