// A sequence of calls as the bytes that a fuzzer changes.
#ifndef WARPLINE_TESTS_FUZZ_CALL_SEQUENCE_H_
#define WARPLINE_TESTS_FUZZ_CALL_SEQUENCE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "google/protobuf/message.h"
#include "tests/fuzz/message_mutator.h"

namespace warpline::testing {

// One call: what is called, and its message. What the numbers mean says who runs the sequence.
struct FuzzedCall {
  std::uint8_t method = 0, argument = 0;
  std::string message;
};
using CallSequence = std::vector<FuzzedCall>;

// Any bytes are a sequence: each call is two numbers, the length of its message in two bytes, and the
// message, of which there may be less than the length says.
CallSequence ReadCalls(std::string_view bytes);
std::string WriteCalls(const CallSequence& calls);

// A new call of any method.
using MakeCall = std::function<FuzzedCall(MessageMutator& random)>;
// An empty message of the method's type; null if it has none.
using NewMessage = std::function<std::unique_ptr<google::protobuf::Message>(std::uint8_t method)>;

// Inserts, removes, repeats or exchanges calls, or changes the message of one.
void Mutate(CallSequence& calls, MessageMutator& random, const MakeCall& make_call,
            const NewMessage& new_message);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_CALL_SEQUENCE_H_
