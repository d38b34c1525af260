#include "proto/rules/step_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_split.h"

namespace warpline {
namespace {

TEST(StepTableTest, HasARowForEachOperationOfAStepInTheirOrder) {
  const auto* const operations = v1::Step::descriptor()->FindOneofByName("operation");
  ASSERT_EQ(StepTable().size(), static_cast<std::size_t>(operations->field_count()));
  for (int i = 0; i < operations->field_count(); ++i) {
    const StepRow& row = StepTable()[static_cast<std::size_t>(i)];
    EXPECT_EQ(row.name, operations->field(i)->name());
    EXPECT_EQ(static_cast<int>(row.operation), operations->field(i)->number());
    EXPECT_EQ(StepNamed(row.name), &row);
  }
  EXPECT_EQ(StepNamed("no_such"), nullptr);
  EXPECT_EQ(RowOf(v1::Step()), nullptr);
}

TEST(StepTableTest, RequiredFieldsAreFieldsOfTheOperationAndHaveAnExample) {
  for (const StepRow& row : StepTable()) {
    EXPECT_EQ(row.required.empty(), row.example.empty()) << row.name;
    const auto* const type = v1::Step::descriptor()->FindFieldByName(std::string(row.name))->message_type();
    if (!row.required.empty()) {
      EXPECT_NE(type->FindFieldByName(std::string(row.required)), nullptr) << row.name;
    }
  }
}

// The help of `warpline run` is made of these.
TEST(StepTableTest, CallsNameTheOperationAndAsManyOperandsAsItReads) {
  for (const StepRow& row : StepTable()) {
    if (row.operation == v1::Step::kMap) continue;
    const std::string call(row.call);
    EXPECT_THAT(call, ::testing::StartsWith(std::string(row.name) + "("));
    const auto operands = static_cast<int>(std::vector<std::string>(absl::StrSplit(call, ", ")).size());
    EXPECT_EQ(row.operands == kAnyNumber ? operands : row.operands, operands) << call;
    for (const absl::string_view line : absl::StrSplit(std::string(row.help), '\n')) {
      EXPECT_LE(line.size(), 96u) << line;
    }
  }
}

}  // namespace
}  // namespace warpline
