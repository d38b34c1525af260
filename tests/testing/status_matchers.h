// Matchers for absl::Status and absl::StatusOr, by the names of newer Abseil (absl/status/status_matchers.h),
// to be deleted once that is the minimum.
//
//   EXPECT_THAT(Parse(text), IsOk());
//   EXPECT_THAT(Parse(text), IsOkAndHolds(Eq(3)));
//   EXPECT_THAT(Parse(text), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("shape")));
#ifndef WARPLINE_TESTS_TESTING_STATUS_MATCHERS_H_
#define WARPLINE_TESTS_TESTING_STATUS_MATCHERS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace warpline::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& status_or) {
  return status_or.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << "which is " << StatusOf(arg).ToString();
  return StatusOf(arg).ok();
}

namespace internal {

MATCHER_P2(StatusMatches, code, message,
           "has code " + ::testing::PrintToString(code) + " and a message that " +
               ::testing::DescribeMatcher<const std::string&>(message)) {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code && ::testing::Matches(message)(std::string(status.message()));
}

}  // namespace internal

// `message` is a matcher of std::string; any message will do without it.
inline auto StatusIs(absl::StatusCode code, ::testing::Matcher<const std::string&> message = ::testing::_) {
  return internal::StatusMatches(code, message);
}

MATCHER_P(IsOkAndHolds, value, negation ? "is not OK or holds another value" : "is OK and holds the value") {
  if (!arg.ok()) {
    *result_listener << "which is " << arg.status().ToString();
    return false;
  }
  using Value = typename std::remove_cvref_t<decltype(arg)>::value_type;
  return ::testing::SafeMatcherCast<const Value&>(value).MatchAndExplain(*arg, result_listener);
}

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_STATUS_MATCHERS_H_
