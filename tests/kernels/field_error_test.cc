#include "kernels/field_error.h"

#include <gtest/gtest.h>

#include "absl/strings/cord.h"

namespace warpline {
namespace {

TEST(FieldErrorTest, NamesTheField) {
  const absl::Status status = FieldError("a.shape", "rank 9");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "a.shape: rank 9");
  EXPECT_EQ(FieldOf(status), "a.shape");
  EXPECT_FALSE(FieldOf(absl::InvalidArgumentError("rank 9")).has_value());
  EXPECT_FALSE(FieldOf(absl::OkStatus()).has_value());
}

TEST(FieldErrorTest, KeepsTheRestOfAStatus) {
  absl::Status full = InField("id", absl::ResourceExhaustedError("full"));
  full.SetPayload("other", absl::Cord("payload"));
  const absl::Status about = InField("a.resident", full);
  EXPECT_EQ(about.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(about.message(), "a.resident: id: full");
  EXPECT_EQ(FieldOf(about), "a.resident");
  EXPECT_EQ(about.GetPayload("other"), absl::Cord("payload"));
  EXPECT_TRUE(InField("a", absl::OkStatus()).ok());
}

}  // namespace
}  // namespace warpline
