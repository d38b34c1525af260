#include "server/device/open_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Device {
  int cuda_ordinal;
  int ordinal;
};

// Opens devices 0 to 3 of a node, of which some fail.
class OpenDevicesTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<std::unique_ptr<Device>>> Open(OnUnusable on_unusable) {
    const auto open = [this](int cuda_ordinal, int ordinal) -> absl::StatusOr<std::unique_ptr<Device>> {
      tried_.push_back(cuda_ordinal);
      if (const auto error = errors_.find(cuda_ordinal); error != errors_.end()) return error->second;
      return std::make_unique<Device>(Device{cuda_ordinal, ordinal});
    };
    return OpenDevices<std::unique_ptr<Device>>({0, 1, 2, 3}, on_unusable, open);
  }

  std::map<int, absl::Status> errors_;
  std::vector<int> tried_;
};

TEST_F(OpenDevicesTest, LeavesOutThoseThatAreFullAndCountsTheOthersFromZero) {
  errors_ = {{0, absl::ResourceExhaustedError("full")}, {2, absl::UnavailableError("in use")}};
  const auto devices = Open(OnUnusable::kSkip);
  ASSERT_TRUE(devices.ok()) << devices.status();
  std::vector<int> cuda_ordinals, ordinals;
  for (const auto& device : *devices) {
    cuda_ordinals.push_back(device->cuda_ordinal);
    ordinals.push_back(device->ordinal);
  }
  EXPECT_THAT(cuda_ordinals, ElementsAre(1, 3));
  EXPECT_THAT(ordinals, ElementsAre(0, 1));
}

TEST_F(OpenDevicesTest, FailsWithTheLastErrorIfNoneIsLeft) {
  for (int i = 0; i < 4; ++i) errors_[i] = absl::UnavailableError("in use");
  errors_[3] = absl::ResourceExhaustedError("full");
  const absl::Status status = Open(OnUnusable::kSkip).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("CUDA device 3"), HasSubstr("full")));
}

TEST_F(OpenDevicesTest, FailsForANamedDeviceThatIsFull) {
  errors_ = {{1, absl::UnavailableError("full")}};
  const absl::Status status = Open(OnUnusable::kFail).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr("CUDA device 1"), HasSubstr("full")));
  EXPECT_THAT(tried_, ElementsAre(0, 1));
}

TEST_F(OpenDevicesTest, SkipsNoDeviceForAnErrorOfOurOwn) {
  for (const absl::Status& error : {absl::InternalError("bug"), absl::InvalidArgumentError("bad flag")}) {
    errors_ = {{2, error}};
    EXPECT_EQ(Open(OnUnusable::kSkip).status().code(), error.code());
  }
}

}  // namespace
}  // namespace warpline
