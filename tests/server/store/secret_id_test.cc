#include "server/store/secret_id.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/testing/status_matchers.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

TEST(SecretIdsTest, AreDifferentAndTheServersOwn) {
  const SecretIds ids("tensor", "put");
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string id = ids.New();
    EXPECT_TRUE(seen.insert(id).second);
    EXPECT_THAT(ids.Check(id), IsOk());
    EXPECT_LE(id.size(), 64u);  // as the API promises
  }
}

TEST(SecretIdsTest, AnotherServersIdIsToldFromOneOfNobody) {
  const SecretIds ids("tensor", "put"), others("tensor", "put");
  const std::string foreign = others.New();
  EXPECT_THAT(ids.Check(foreign), StatusIs(absl::StatusCode::kFailedPrecondition,
                                           AllOf(HasSubstr("made by server " + foreign.substr(0, 8)),
                                                 HasSubstr("put the tensor again"))));
  for (const std::string& text : {std::string(), std::string("t"), foreign.substr(1), foreign + "0",
                                  std::string(foreign.size(), '0'), std::string(1000, 'a')}) {
    EXPECT_THAT(ids.Check(text),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(std::to_string(text.size()))))
        << text;
  }
}

TEST(SecretIdsTest, OnlyTheLastDigitsAreShown) {
  const SecretIds ids("tensor", "put"), others("tensor", "put");
  const std::string id = others.New();
  EXPECT_EQ(Abbreviate(id), "..." + id.substr(id.size() - 8));
  EXPECT_EQ(Abbreviate("a password"), "");
  EXPECT_THAT(std::string(ids.Check(id).message()), Not(HasSubstr(id.substr(9))));
}

}  // namespace
}  // namespace warpline
