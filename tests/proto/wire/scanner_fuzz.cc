// libFuzzer target: the wire scanner and protobuf agree on any bytes, however they are sliced.
//
// Needs clang with -fsanitize=fuzzer. The first two bytes choose message type and slicing.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/testing/quiet_protobuf.h"
#include "tests/testing/wire_agreement.h"
#include "warpline/v1/warpline.pb.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const auto* const silencer = new warpline::testing::QuietProtobuf;
  (void)silencer;
  static const std::array<const google::protobuf::Message*, 4> prototypes = {
      &warpline::v1::TransposeRequest::default_instance(), &warpline::v1::GemmRequest::default_instance(),
      &warpline::v1::ReduceRequest::default_instance(), &warpline::v1::RunRequest::default_instance()};

  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  // Two alternating sizes, 1 to 16 and 0 to 15.
  const std::size_t slice_sizes[] = {1u + data[1] % 16, data[1] / 16u};
  const auto slices = warpline::testing::Slice(bytes, slice_sizes);
  const auto agreement =
      warpline::testing::CompareWithProtobuf(*prototypes[data[0] % prototypes.size()], slices);
  if (!agreement.difference.empty()) {
    std::fprintf(stderr, "%s\n", agreement.difference.c_str());
    std::abort();
  }
  return 0;
}
