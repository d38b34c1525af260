// The calls of TensorService that a fuzzed sequence is made of.
#ifndef WARPLINE_TESTS_FUZZ_TENSOR_CALLS_H_
#define WARPLINE_TESTS_FUZZ_TENSOR_CALLS_H_

#include <cstdint>
#include <memory>

#include "tests/fuzz/call_sequence.h"

namespace warpline::testing {

// What a call's method number means, modulo their number. The argument says whose call it is (bit 0: one of
// two owners), on which of four streams (bits 1 and 2), and how a message is cut (the rest).
enum class TensorCall : std::uint8_t { kCreate, kPut, kEndPut, kCancelPut, kGet, kDrop, kRenew, kList };
inline constexpr int kTensorCalls = 8;

FuzzedCall AnyTensorCall(MessageMutator& random);
std::unique_ptr<google::protobuf::Message> NewTensorMessage(std::uint8_t method);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_TENSOR_CALLS_H_
