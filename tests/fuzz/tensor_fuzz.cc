// libFuzzer target: sequences of calls of TensorService.
#include "tests/fuzz/sequence_fuzz.h"
#include "tests/fuzz/tensor_check.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace warpline::testing;
  return MutateSequence(data, size, max_size, seed, AnyTensorCall, NewTensorMessage);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto* const check = new warpline::testing::TensorCheck;
  return warpline::testing::RunSequence(*check, data, size);
}
