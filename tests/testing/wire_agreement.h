// The property that makes the wire scanner right: reading a message through it is the same as letting
// protobuf parse it. Shared by the unit test's random messages and by the coverage-guided fuzzer.
#ifndef WARPLINE_TESTS_TESTING_WIRE_AGREEMENT_H_
#define WARPLINE_TESTS_TESTING_WIRE_AGREEMENT_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "google/protobuf/message.h"
#include "proto/wire/scanner.h"

namespace warpline::testing {

struct Agreement {
  bool accepted = false;   // by protobuf
  std::string difference;  // empty if both agree
};

// Parses `slices` as a message of the prototype's type, both directly and through the scanner, and compares
// verdict and message, unknown fields included. The scanner's own limits are out of the way.
Agreement CompareWithProtobuf(const google::protobuf::Message& prototype, Slices slices);

// Puts the payloads and the scalars back in the place of their tokens.
void SubstituteTokens(google::protobuf::Message& message, Slices slices, const ScannedMessage& scanned);

// Cuts bytes into slices: the n-th has sizes[n % sizes.size()] bytes. Not all sizes may be 0.
std::vector<std::span<const std::byte>> Slice(std::string_view bytes, std::span<const std::size_t> sizes);

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_WIRE_AGREEMENT_H_
