// libFuzzer target: the requests of KernelService. The first byte chooses the method, the second the slicing.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "tests/fuzz/kernel_check.h"
#include "tests/fuzz/valid_requests.h"
#include "tests/testing/quiet_protobuf.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace warpline {
namespace {

constexpr std::size_t kPrefix = 2;

RequestKind KindOf(std::uint8_t byte) { return kAllRequestKinds[byte % kAllRequestKinds.size()]; }

void Silence() {
  static const testing::QuietProtobuf* const silencer = new testing::QuietProtobuf;
  static_cast<void>(silencer);
}

}  // namespace
}  // namespace warpline

// Half of the changes are those of a message that protobuf writes again; others keep what protobuf would not
// write. There is no corpus to start from: valid requests come from here too.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  using namespace warpline;
  Silence();
  testing::MessageMutator mutator(seed);
  if (size > kPrefix && mutator.OneIn(3)) {
    return kPrefix + LLVMFuzzerMutate(data + kPrefix, size - kPrefix, max_size - kPrefix);
  }
  std::uint8_t prefix[kPrefix] = {static_cast<std::uint8_t>(mutator.Below(256)),
                                  static_cast<std::uint8_t>(mutator.Below(256))};
  std::unique_ptr<google::protobuf::Message> message;
  if (size <= kPrefix || mutator.OneIn(16)) {
    message = testing::ValidRequest(KindOf(prefix[0]), mutator);
  } else {
    prefix[0] = data[0];
    if (!mutator.OneIn(8)) prefix[1] = data[1];
    message = testing::NewRequest(KindOf(prefix[0]));
    // The part that could be read is in the message even if parsing fails.
    static_cast<void>(message->ParsePartialFromArray(data + kPrefix, static_cast<int>(size - kPrefix)));
    mutator.Mutate(*message);
  }
  const std::string bytes = message->SerializePartialAsString();
  if (kPrefix + bytes.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, prefix, kPrefix);
  std::memcpy(data + kPrefix, bytes.data(), bytes.size());
  return kPrefix + bytes.size();
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpline;
  if (size < kPrefix) return 0;
  Silence();
  static auto* const check = new testing::KernelCheck;
  // Two alternating sizes, 1 to 64 and 0 to 60.
  const std::size_t slice_sizes[] = {1u + 4 * (data[1] % 16u), 4 * (data[1] / 16u)};
  const std::string flaw = check->Check(
      KindOf(data[0]), {reinterpret_cast<const char*>(data) + kPrefix, size - kPrefix}, slice_sizes);
  if (!flaw.empty()) {
    std::fprintf(stderr, "%s\n", flaw.c_str());
    std::abort();
  }
  return 0;
}
