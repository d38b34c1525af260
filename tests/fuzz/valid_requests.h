// Valid requests of random kinds, from which fuzzing starts.
#ifndef WARPLINE_TESTS_FUZZ_VALID_REQUESTS_H_
#define WARPLINE_TESTS_FUZZ_VALID_REQUESTS_H_

#include <memory>

#include "google/protobuf/message.h"
#include "server/rpc/codec/codec.h"
#include "tests/fuzz/message_mutator.h"

namespace warpline::testing {

// The resident tensors that requests name: float matrices of kResidentSide x kResidentSide, and the regions.
inline constexpr int kResidentSide = 4;
inline constexpr const char* kResidentNames[] = {"t0", "t1"};
inline constexpr const char* kRegionNames[] = {"r0", "r1"};

// An empty message of the method's request type.
std::unique_ptr<google::protobuf::Message> NewRequest(RequestKind kind);
// One that the server runs, but for a few programs whose types do not fit together. Dimensions are below 8.
std::unique_ptr<google::protobuf::Message> ValidRequest(RequestKind kind, MessageMutator& random);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_VALID_REQUESTS_H_
