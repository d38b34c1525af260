#include "server/device/select_variant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpline {
namespace {

using ::testing::HasSubstr;

using Row = Variant<TransposeProblem, int()>;

std::size_t NoWorkspace(const TransposeProblem&, const DeviceTraits&) { return 0; }
bool AnyType(DType) { return true; }
bool EvenRowsOnly(const TransposeProblem& problem, const DeviceTraits&) { return problem.shape[0] % 2 == 0; }
bool Always(const TransposeProblem&, const DeviceTraits&) { return true; }

constexpr Row kTable[] = {
    {"pairs", "", true, AnyType, EvenRowsOnly, NoWorkspace, nullptr},
    {"plain", "", true, AnyType, Always, NoWorkspace, nullptr},
};

absl::Status CheckName(std::string_view name, std::int64_t rows, std::span<const Row> table = kTable) {
  TransposeProblem problem;
  problem.shape = {rows, 3};
  return CheckVariantIn(table, problem, name, {});
}

TEST(SelectVariantTest, TakesTheNamedRowThatSuitsAndAnyForNoName) {
  EXPECT_TRUE(CheckName("pairs", 4).ok());
  EXPECT_TRUE(CheckName("plain", 5).ok());
  EXPECT_TRUE(CheckName("", 5).ok());
}

TEST(SelectVariantTest, TellsARowThatDoesNotSuitFromOneThatIsNotThere) {
  const absl::Status unsuited = CheckName("pairs", 5);
  EXPECT_TRUE(absl::IsInvalidArgument(unsuited));
  EXPECT_THAT(std::string(unsuited.message()),
              HasSubstr("\"pairs\" cannot run this problem on this device; suitable: plain"));
  const absl::Status unknown = CheckName("fast", 4);
  EXPECT_TRUE(absl::IsInvalidArgument(unknown));
  EXPECT_THAT(std::string(unknown.message()),
              HasSubstr("not a variant of this operation on this server's backend; suitable: pairs, plain"));
}

TEST(SelectVariantTest, SaysThatNoRowSuitsWhereNoneIsNamed) {
  const absl::Status status = CheckName("", 5, std::span(kTable).first(1));
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("none of this server's backend can run this problem"));
}

TEST(SelectVariantTest, TheServersChoiceIsTheFirstRowThatIsReproducibleAndPreferred) {
  constexpr auto kNever = [](const TransposeProblem&, const DeviceTraits&) { return false; };
  const Row table[] = {
      {"racing", "", false, AnyType, Always, NoWorkspace, nullptr},
      {"large", "", true, AnyType, Always, NoWorkspace, nullptr, nullptr, kNever},
      {"pairs", "", true, AnyType, EvenRowsOnly, NoWorkspace, nullptr},
      {"plain", "", true, AnyType, Always, NoWorkspace, nullptr},
  };
  const auto found = [&](std::string_view name, std::int64_t rows) -> std::string_view {
    TransposeProblem problem;
    problem.shape = {rows, 3};
    const Row* row = FindVariant(std::span<const Row>(table), problem, name, {});
    return row == nullptr ? "none" : row->name;
  };
  EXPECT_EQ(found("", 4), "pairs");
  EXPECT_EQ(found("", 5), "plain");
  // A row that suits always runs if it is asked for by its name.
  EXPECT_EQ(found("racing", 5), "racing");
  EXPECT_EQ(found("large", 5), "large");
  EXPECT_EQ(found("pairs", 5), "none");
  EXPECT_EQ(found("fast", 5), "none");
}

TEST(SelectVariantTest, ReproducibleIsWhatTheRowSays) {
  const std::vector<VariantInfo> variants = {{Op::kReduce, "atomic", "", false, {}},
                                             {Op::kReduce, "plain", "", true, {}},
                                             {Op::kGemm, "atomic", "", true, {}}};
  EXPECT_TRUE(CheckReproducible(variants, Op::kReduce, "").ok());
  EXPECT_TRUE(CheckReproducible(variants, Op::kReduce, "plain").ok());
  EXPECT_TRUE(CheckReproducible(variants, Op::kGemm, "atomic").ok());
  const absl::Status refused = CheckReproducible(variants, Op::kReduce, "atomic");
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_EQ(FieldOf(refused), "variant");
  EXPECT_THAT(std::string(refused.message()), HasSubstr("\"atomic\" may give other bits"));
}

}  // namespace
}  // namespace warpline
