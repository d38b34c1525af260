// libFuzzer target: conversations on the region socket.
#include "tests/fuzz/region_check.h"
#include "tests/fuzz/sequence_fuzz.h"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace warpline::testing;
  return MutateSequence(data, size, max_size, seed, AnyRegionCall, NewRegionMessage);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static auto* const check = new warpline::testing::RegionCheck;
  return warpline::testing::RunSequence(*check, data, size);
}
