// The shared parts of the libFuzzer targets whose inputs are sequences of calls.
#ifndef WARPLINE_TESTS_FUZZ_SEQUENCE_FUZZ_H_
#define WARPLINE_TESTS_FUZZ_SEQUENCE_FUZZ_H_

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/fuzz/call_sequence.h"
#include "tests/testing/quiet_protobuf.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace warpline::testing {

inline std::size_t MutateSequence(std::uint8_t* data, std::size_t size, std::size_t max_size, unsigned seed,
                                  const MakeCall& make_call, const NewMessage& new_message) {
  static const QuietProtobuf* const silencer = new QuietProtobuf;
  static_cast<void>(silencer);
  MessageMutator random(seed);
  if (size > 1 && random.OneIn(4)) return LLVMFuzzerMutate(data, size, max_size);
  CallSequence calls = ReadCalls({reinterpret_cast<const char*>(data), size});
  Mutate(calls, random, make_call, new_message);
  const std::string bytes = WriteCalls(calls);
  if (bytes.empty() || bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, bytes.data(), bytes.size());
  return bytes.size();
}

template <typename Check>
int RunSequence(Check& check, const std::uint8_t* data, std::size_t size) {
  const std::string flaw = check.Check(ReadCalls({reinterpret_cast<const char*>(data), size}));
  if (flaw.empty()) return 0;
  std::fprintf(stderr, "%s\n", flaw.c_str());
  std::abort();
}

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_SEQUENCE_FUZZ_H_
