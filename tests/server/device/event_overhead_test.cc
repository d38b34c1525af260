#include "server/device/event_overhead.h"

#include "gtest/gtest.h"

namespace warpline {
namespace {

TEST(EventOverheadTest, IsTakenOffWhatWasTimed) {
  EXPECT_DOUBLE_EQ(WithoutOverhead(12e-6, 2e-6), 10e-6);
  EXPECT_DOUBLE_EQ(WithoutOverhead(12e-6, 0), 12e-6);
}

// One that seems to take less than its overhead, since that varies.
TEST(EventOverheadTest, NoKernelTakesNoTime) {
  EXPECT_DOUBLE_EQ(WithoutOverhead(2e-6, 2.3e-6), 0.5e-6);
  EXPECT_DOUBLE_EQ(WithoutOverhead(0, 0), 0.5e-6);
}

}  // namespace
}  // namespace warpline
