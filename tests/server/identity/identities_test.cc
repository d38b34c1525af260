#include "server/identity/identities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/identity/token.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string Owner(const std::string& name, const std::string& token, const std::string& more = "") {
  return absl::StrCat("[owner.\"token:", name, "\"]\nsha256 = \"", absl::BytesToHexString(TokenDigest(token)),
                      "\"\n", more, "\n");
}

class IdentitiesTest : public ::testing::Test {
 protected:
  ~IdentitiesTest() override { std::remove(path_.c_str()); }
  void Write(const std::string& text) const { std::ofstream(path_) << text; }
  std::unique_ptr<Identities> Open() const {
    auto identities = Identities::Open({.file = path_, .period = absl::Milliseconds(2)});
    EXPECT_TRUE(identities.ok()) << identities.status();
    return *std::move(identities);
  }
  static bool Await(const std::function<bool()>& condition) {
    for (int i = 0; i < 10000 && !condition(); ++i) absl::SleepFor(absl::Milliseconds(5));
    return condition();
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/warpline_owners_", ::getpid());
};

TEST_F(IdentitiesTest, TellsOwnersByTheirTokens) {
  Write(Owner("alice", "secret a", "weight = 2\njobs = 7") + Owner("bob", "secret b"));
  const auto identities = Open();
  const auto alice = identities->Identify("Bearer secret a", "anonymous");
  const auto bob = identities->Identify("bearer secret b", "anonymous");
  ASSERT_TRUE(alice.ok() && bob.ok());
  EXPECT_NE(*alice, *bob);
  EXPECT_NE(*alice, kAnonymous);
  EXPECT_EQ(identities->Identify("Bearer secret a", "cert:CN=proxy").value(), *alice)
      << "a token is for whom it is";
  EXPECT_EQ(identities->NameOf(*alice), "token:alice");
  EXPECT_EQ(identities->LimitsOf(*alice), (OwnerLimits{.weight = 2, .jobs = 7}));
  EXPECT_EQ(identities->LimitsOf(*bob), OwnerLimits());
}

TEST_F(IdentitiesTest, RefusesWhoIsNotKnownAndDoesNotSayTheToken) {
  Write(Owner("alice", "secret a"));
  const auto identities = Open();
  for (const char* header : {"", "Bearer", "Bearer ", "Bearer secret b", "Basic c2VjcmV0", "secret a"}) {
    const auto owner = identities->Identify(header, "anonymous");
    EXPECT_EQ(owner.status().code(), absl::StatusCode::kUnauthenticated) << header;
    EXPECT_THAT(std::string(owner.status().message()), Not(HasSubstr("secret b")));
  }
}

TEST_F(IdentitiesTest, LetsAnonymousClientsInIfTheyHaveATable) {
  Write("[owner.anonymous]\njobs = 3\n[owner.default]\njobs = 5\n");
  const auto identities = Open();
  EXPECT_EQ(identities->Identify("", "anonymous").value(), kAnonymous);
  EXPECT_EQ(identities->LimitsOf(kAnonymous).jobs, 3);
  const auto carol = identities->Identify("", "cert:CN=carol");
  ASSERT_TRUE(carol.ok());
  EXPECT_EQ(identities->NameOf(*carol), "cert:CN=carol");
  EXPECT_EQ(identities->LimitsOf(*carol).jobs, 5);
  EXPECT_EQ(identities->Identify("", "cert:CN=carol").value(), *carol);
}

TEST_F(IdentitiesTest, WithoutAFileCertificatesTellOwnersAndTheOthersAreAnonymous) {
  const auto identities = Identities::Open({});
  ASSERT_TRUE(identities.ok());
  EXPECT_EQ((*identities)->Identify("", "anonymous").value(), kAnonymous);
  EXPECT_NE((*identities)->Identify("", "cert:CN=carol").value(), kAnonymous);
  EXPECT_NE((*identities)->Identify("Bearer of another's", "cert:CN=carol").value(), kAnonymous);
  EXPECT_EQ((*identities)->Identify("", "cert:").status().code(), absl::StatusCode::kUnauthenticated);
}

TEST_F(IdentitiesTest, FollowsTheFile) {
  Write(Owner("alice", "old"));
  const auto identities = Open();
  const OwnerId alice = identities->Identify("Bearer old", "anonymous").value();
  Write(Owner("alice", "new", "jobs = 2"));
  EXPECT_TRUE(Await([&] { return identities->Identify("Bearer new", "anonymous").ok(); }));
  EXPECT_EQ(identities->Identify("Bearer new", "anonymous").value(), alice)
      << "the owner keeps what is the owner's";
  EXPECT_FALSE(identities->Identify("Bearer old", "anonymous").ok());
  EXPECT_EQ(identities->LimitsOf(alice).jobs, 2);
}

TEST_F(IdentitiesTest, KeepsWhatItHadWhileTheFileMakesNoSense) {
  Write(Owner("alice", "old"));
  const auto identities = Open();
  Write("[owner.\"token:alice\"]\nsha256 = \"half");
  absl::SleepFor(absl::Milliseconds(50));  // if it were taken, then by now
  EXPECT_TRUE(identities->Identify("Bearer old", "anonymous").ok());
  std::remove(path_.c_str());
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_TRUE(identities->Identify("Bearer old", "anonymous").ok());
  Write("");
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_TRUE(identities->Identify("Bearer old", "anonymous").ok());
  Write(Owner("alice", "new"));
  EXPECT_TRUE(Await([&] { return identities->Identify("Bearer new", "anonymous").ok(); }));
}

TEST_F(IdentitiesTest, OpeningFailsWithTheReason) {
  EXPECT_EQ(Identities::Open({.file = ::testing::TempDir()}).status().code(),
            absl::StatusCode::kInvalidArgument);
  const auto missing = Identities::Open({.file = path_});
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr(path_));
  Write("[owner.default]\njobs = -1");
  EXPECT_EQ(Identities::Open({.file = path_}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(TokenTest, AreLongAndNeverTheSame) {
  EXPECT_NE(NewToken(), NewToken());
  EXPECT_GE(NewToken().size(), 50U);
  // The digest of "abc", from FIPS 180-4.
  EXPECT_EQ(absl::BytesToHexString(TokenDigest("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace warpline
