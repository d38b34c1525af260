#include "server/device/named_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::warpline::testing::IsOk;
using ::warpline::testing::IsOkAndHolds;
using ::warpline::testing::StatusIs;

constexpr auto kRefused = absl::StatusCode::kInvalidArgument;

// Eight devices whose UUIDs differ in the first digits.
std::vector<std::string> Eight() {
  std::vector<std::string> uuids;
  for (int i = 0; i < 8; ++i) {
    uuids.push_back("GPU-ab" + std::to_string(i) + "13b2a-10be-8496-2cf9-860c3807c64a");
  }
  return uuids;
}

absl::StatusOr<std::vector<int>> Find(const std::vector<std::string>& names) {
  return FindNamedDevices(names, Eight());
}

TEST(NamedDevicesTest, OrdinalsAndUuidsInTheOrderOfTheirNames) {
  EXPECT_THAT(Find({}), IsOkAndHolds(IsEmpty()));
  EXPECT_THAT(Find({"7", Eight()[2], "0"}), IsOkAndHolds(ElementsAre(7, 2, 0)));
}

TEST(NamedDevicesTest, TheBeginningOfAUuidIsEnoughIfOneDeviceHasIt) {
  EXPECT_THAT(Find({"GPU-ab5", "gpu-AB6"}), IsOkAndHolds(ElementsAre(5, 6)));
  EXPECT_THAT(Find({"GPU-ab"}),
              StatusIs(kRefused, HasSubstr("the beginning of several of the devices GPU-ab0")));
}

TEST(NamedDevicesTest, NamesOfNoDeviceAreRefusedWithThoseThatThereAre) {
  EXPECT_THAT(Find({"8"}), StatusIs(kRefused, "--devices: 8 is not in 0..7"));
  EXPECT_THAT(Find({"-1"}), StatusIs(kRefused, HasSubstr("not in 0..7")));
  EXPECT_THAT(Find({"GPU-0"}), StatusIs(kRefused, HasSubstr("GPU-0 is none of the devices GPU-ab0")));
}

TEST(NamedDevicesTest, ADeviceIsNamedOnce) {
  EXPECT_THAT(Find({"3", "GPU-ab3"}), StatusIs(kRefused, HasSubstr("GPU-ab3 names device 3")));
}

TEST(NamedDevicesTest, OneMigInstanceAtMost) {
  EXPECT_THAT(CheckVisibleDevices(""), IsOk());
  EXPECT_THAT(CheckVisibleDevices("0,1,GPU-ab5"), IsOk());
  EXPECT_THAT(CheckVisibleDevices("MIG-1"), IsOk());
  EXPECT_THAT(CheckVisibleDevices("MIG-1, MIG-2"),
              StatusIs(kRefused, HasSubstr("names 2 MIG instances, of which a process can use one")));
}

}  // namespace
}  // namespace warpline
