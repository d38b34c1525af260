#include "server/identity/owner_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kDigest(64, 'a');  // NOLINT: in a test

std::string ErrorOf(const std::string& text) {
  const auto entries = ParseOwners(text, "owners.toml");
  EXPECT_EQ(entries.status().code(), absl::StatusCode::kInvalidArgument) << text;
  return std::string(entries.status().message());
}

TEST(OwnerFileTest, HasTokensAndQuotas) {
  auto entries = ParseOwners(absl::StrCat("[owner.\"token:alice\"]\nsha256 = \"", kDigest, R"("
weight = 2
jobs = 100
bytes = "1G"
resident-bytes = 4096
region-bytes = "16MiB"

# Known by its certificate.
[owner."cert:CN=bob,O=example"]
weight = 0.5
)"),
                             "owners.toml");
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2U);
  std::sort(entries->begin(), entries->end(), [](const auto& a, const auto& b) { return a.name > b.name; });
  const OwnerEntry &alice = (*entries)[0], &bob = (*entries)[1];
  EXPECT_EQ(alice.name, "token:alice");
  EXPECT_EQ(absl::BytesToHexString(alice.token_digest), kDigest);
  EXPECT_EQ(alice.limits, (OwnerLimits{.weight = 2,
                                       .jobs = 100,
                                       .bytes = std::int64_t{1} << 30,
                                       .resident_bytes = 4096,
                                       .region_bytes = 16 << 20}));
  EXPECT_EQ(bob.name, "cert:CN=bob,O=example");
  EXPECT_EQ(bob.token_digest, "");
  EXPECT_EQ(bob.limits, (OwnerLimits{.weight = 0.5}));
}

TEST(OwnerFileTest, MayBeEmpty) {
  const auto entries = ParseOwners("# nobody\n", "owners.toml");
  ASSERT_TRUE(entries.ok()) << entries.status();
  EXPECT_TRUE(entries->empty());
}

TEST(OwnerFileTest, ErrorsNameLineOwnerAndKey) {
  EXPECT_THAT(ErrorOf("[owner.default]\nwieght = 2\n"),
              AllOf(HasSubstr("owners.toml:2"), HasSubstr("\"default\""), HasSubstr("wieght"),
                    HasSubstr("unknown key wieght; known: sha256, weight")));
  for (const char* weight : {"0", "101", "-1", "\"2\"", "nan"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("[owner.default]\nweight = ", weight)), HasSubstr("from 0.01 to 100"));
  }
  EXPECT_THAT(ErrorOf("[owner.default]\njobs = 0"), HasSubstr("jobs must be a whole number above 0"));
  for (const char* bytes : {"\"1T\"", "-1", "1000000", "true"}) {
    EXPECT_THAT(ErrorOf(absl::StrCat("[owner.default]\nbytes = ", bytes)),
                HasSubstr("bytes must be a number of bytes from 8388608 on"));
  }
  EXPECT_THAT(ErrorOf("[owner.\"token:a\"]\nweight = 1"), HasSubstr("sha256 is missing"));
  EXPECT_THAT(ErrorOf("[owner.\"token:a\"]\nsha256 = \"abc\""), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(ErrorOf(absl::StrCat("[owner.anonymous]\nsha256 = \"", kDigest, "\"")),
              HasSubstr("only token:NAME has a token"));
  EXPECT_THAT(ErrorOf(absl::StrCat("[owner.\"token:a\"]\nsha256 = \"", kDigest,
                                   "\"\n[owner.\"token:b\"]\nsha256 = \"", kDigest, "\"")),
              HasSubstr("another owner has the same token"));
  EXPECT_THAT(ErrorOf("[owner.alice]\n"), HasSubstr("\"alice\" is no owner"));
  EXPECT_THAT(ErrorOf("[owner]\nanonymous = 3"), HasSubstr("\"anonymous\" is no owner"));
  EXPECT_THAT(ErrorOf("[user.a]\n"), HasSubstr("\"user\" is unknown"));
  EXPECT_THAT(ErrorOf("# owners\n[owner.default\n"), HasSubstr("no TOML: line 2"));
  EXPECT_THAT(ErrorOf("warpline_secret\n"), Not(HasSubstr("warpline_secret")));
}

}  // namespace
}  // namespace warpline
