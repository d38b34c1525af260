// Mutated requests of KernelService, without libFuzzer: a few thousand of them in every build.
#include "tests/fuzz/kernel_check.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "tests/fuzz/valid_requests.h"
#include "tests/testing/quiet_protobuf.h"
#include "tests/testing/random_wire.h"

namespace warpline::testing {
namespace {

constexpr int kMessages = 1000;  // of each method

class KernelCheckTest : public ::testing::TestWithParam<RequestKind> {
 protected:
  // Empty if all was well.
  std::string Check(const std::string& message) {
    const std::size_t sizes[] = {1 + mutator_.Below(64), mutator_.Below(16)};
    return check_.Check(GetParam(), message, sizes);
  }

  const QuietProtobuf silencer_;
  MessageMutator mutator_{static_cast<std::uint64_t>(GetParam()) + 1};
  KernelCheck check_;
};

TEST_P(KernelCheckTest, ValidRequestsAreRun) {
  for (int i = 0; i < kMessages; ++i) {
    const std::string message = ValidRequest(GetParam(), mutator_)->SerializeAsString();
    ASSERT_EQ(Check(message), "") << "message " << i;
  }
  // The others are refused for types that an operation does not have, and for slices that overlap.
  EXPECT_GT(check_.counts().run, kMessages / 3);
}

TEST_P(KernelCheckTest, ChangedRequestsAreRunOrRefused) {
  RandomWire wire(7);
  for (int i = 0; i < kMessages; ++i) {
    const auto message = ValidRequest(GetParam(), mutator_);
    for (std::uint64_t change = mutator_.Below(3); change > 0; --change) mutator_.Mutate(*message);
    std::string bytes = message->SerializePartialAsString();
    if (mutator_.OneIn(3)) wire.Damage(bytes);
    ASSERT_EQ(Check(bytes), "") << "message " << i << ": " << message->ShortDebugString();
  }
  EXPECT_GT(check_.counts().run, kMessages / 10);
  EXPECT_GT(check_.counts().messages - check_.counts().planned, kMessages / 10);
}

INSTANTIATE_TEST_SUITE_P(Methods, KernelCheckTest, ::testing::ValuesIn(kAllRequestKinds),
                         [](const auto& kind) { return std::string(Name(kind.param)); });

}  // namespace
}  // namespace warpline::testing
