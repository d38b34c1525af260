// The calls of TensorService that a fuzzed sequence is made of.
#ifndef WARPLINE_TESTS_FUZZ_TENSOR_CALLS_H_
#define WARPLINE_TESTS_FUZZ_TENSOR_CALLS_H_

#include <cstdint>
#include <memory>

#include "tests/fuzz/call_sequence.h"

namespace warpline::testing {

// The meaning of a call's method number, modulo the number of methods. Bit 0 of the argument says which of
// two owners calls. Bits 1 and 2 say on which of four streams. The other bits say how a message is cut.
enum class TensorCall : std::uint8_t { kCreate, kPut, kEndPut, kCancelPut, kGet, kDrop, kRenew, kList };
inline constexpr int kTensorCalls = 8;

FuzzedCall AnyTensorCall(MessageMutator& random);
std::unique_ptr<google::protobuf::Message> NewTensorMessage(std::uint8_t method);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_TENSOR_CALLS_H_
