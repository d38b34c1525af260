// Clients that say who they are by tokens, and what each of them may have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/e2e/announced.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"
#include "tests/testing/status_matchers.h"
#include "warpline/client.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::warpline::testing::IsOk;
using ::warpline::testing::StatusIs;

constexpr absl::Duration kTimeout = absl::Seconds(60);

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The output of `warplined --new-token`.
struct Minted {
  explicit Minted(const std::string& name) {
    const std::string path = absl::StrCat(::testing::TempDir(), "/warpline_minted_", ::getpid());
    const std::string line =
        absl::StrCat(std::getenv("WARPLINED"), " --new-token=", name, " >", path, " 2>", path, ".secret");
    EXPECT_EQ(std::system(line.c_str()), 0);
    table = TextOf(path);
    std::ifstream(path + ".secret") >> token;
    std::remove(path.c_str());
    std::remove((path + ".secret").c_str());
  }
  std::string token, table;
};

class IdentityTest : public ::testing::Test {
 protected:
  ~IdentityTest() override { std::remove(path_.c_str()); }

  std::string Write(const std::string& text) const {
    std::ofstream(path_) << text;
    return path_;
  }
  client::Client As(const std::string& token) const {
    return client::Client(daemon_.address(), {.channel = {.token = token}});
  }
  static client::ConstArray Bytes(const std::string& data) {
    return {.dtype = DType::kU8, .shape = {static_cast<std::int64_t>(data.size())}, .data = data.data()};
  }

  const Minted alice_{"alice"}, bob_{"bob"};
  const std::string path_ = absl::StrCat(::testing::TempDir(), "/warpline_tokens_", ::getpid());
  const Daemon daemon_{{"--tokens=" + Write(alice_.table + bob_.table +
                                            "resident-bytes = \"64K\"\n"
                                            "bytes = \"8M\"\n")}};
};

TEST_F(IdentityTest, WhoHasATokenIsServedAndOthersAreNot) {
  const std::string data(6, 'x');
  EXPECT_THAT(As(alice_.token).Reduce({.x = Bytes(data)}, kTimeout), IsOk());
  EXPECT_THAT(As(alice_.token).GetInfo(kTimeout), IsOk());
  for (const std::string& token : {std::string(), std::string("warpline_guess"), alice_.token + "x"}) {
    const absl::Status refused = As(token).GetInfo(kTimeout).status();
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("token"))) << token;
    EXPECT_THAT(std::string(refused.message()), Not(HasSubstr("warpline_")));
    EXPECT_THAT(As(token).Put(Bytes(data), kTimeout).status(), StatusIs(absl::StatusCode::kUnauthenticated));
    EXPECT_THAT(As(token).ListTensors(kTimeout).status(), StatusIs(absl::StatusCode::kUnauthenticated));
  }
  // There is no such method, which is for those to know who have a token.
  EXPECT_EQ(RawCall(daemon_.Channel(), ::warpline::Bytes("x"), kTimeout, "/warpline.v1.KernelService/None")
                .error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(IdentityTest, HealthIsForAllAndMetricsAreNot) {
  EXPECT_THAT(As("").IsServing("", kTimeout), IsOk());
  int status = 0;
  daemon_.Get("/healthz", &status);
  EXPECT_EQ(status, 200);
  daemon_.Get("/readyz", &status);
  EXPECT_EQ(status, 200);
  EXPECT_THAT(daemon_.Get("/metrics", &status), HasSubstr("Bearer"));
  EXPECT_EQ(status, 401);
  daemon_.Get("/metrics", &status, "Authorization: Bearer nonsense\r\n");
  EXPECT_EQ(status, 401);
  EXPECT_THAT(daemon_.Get("/metrics", &status, "authorization:Bearer " + alice_.token + "\r\n"),
              HasSubstr("warpline_requests_in_flight"));
  EXPECT_EQ(status, 200);
}

TEST_F(IdentityTest, MessagesOfNobodyInParticularAreNotInflated) {
  const grpc::Status status = RawCall(daemon_.Channel(), ::warpline::Bytes(std::string(1000, 'x')), kTimeout,
                                      "/grpc.health.v1.Health/Check", GRPC_COMPRESS_GZIP);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED) << status.error_message();
}

TEST_F(IdentityTest, NobodyReadsListsOrDropsAnothersTensor) {
  client::Client alice = As(alice_.token), bob = As(bob_.token);
  const std::string data(100, 'a');
  const auto tensor = alice.Put(Bytes(data), kTimeout);
  ASSERT_THAT(tensor, IsOk());
  const std::string& id = tensor->id();
  EXPECT_THAT(*alice.ListTensors(kTimeout), SizeIs(1));
  EXPECT_THAT(*bob.ListTensors(kTimeout), IsEmpty());
  EXPECT_THAT(bob.Get(id, kTimeout).status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(bob.Drop(id, kTimeout), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(bob.Renew(id, absl::Hours(1), kTimeout).status(), StatusIs(absl::StatusCode::kNotFound));
  const client::Operand operand{.dtype = DType::kU8, .shape = {100}, .resident = id};
  EXPECT_THAT(bob.Reduce({.x = operand}, kTimeout).status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(alice.Reduce({.x = operand}, kTimeout), IsOk());
  EXPECT_THAT(alice.Get(id, kTimeout), IsOk());
}

TEST_F(IdentityTest, NobodySendsToAnothersUpload) {
  Announced call(daemon_.Channel(), StreamedTranspose(2, 3), kTimeout, "", alice_.token);
  const auto uploads = call.Accepted();
  ASSERT_TRUE(uploads.has_value());
  const auto put_as = [&](const std::string& token) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    v1::PutResponse response;
    const auto writer = v1::TensorService::NewStub(daemon_.Channel())->Put(&context, &response);
    v1::PutRequest request;
    request.set_id(uploads->ids(0));
    request.set_data(Pattern(6));
    writer->Write(request);
    writer->WritesDone();
    return writer->Finish().error_code();
  };
  EXPECT_EQ(put_as(bob_.token), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(put_as(alice_.token), grpc::StatusCode::OK);
  EXPECT_TRUE(call.Finish().status.ok());
}

TEST_F(IdentityTest, QuotasHoldForTheirOwnerAlone) {
  client::Client alice = As(alice_.token), bob = As(bob_.token);
  const std::string large(96 << 10, 'b'), giant(10 << 20, 'b');
  EXPECT_THAT(bob.Put(Bytes(large), kTimeout).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("its quota is 65536")));
  EXPECT_THAT(alice.Put(Bytes(large), kTimeout), IsOk());
  EXPECT_THAT(bob.Reduce({.x = Bytes(giant)}, kTimeout).status(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("quota is 8388608")));
  EXPECT_THAT(alice.Reduce({.x = Bytes(giant)}, kTimeout), IsOk());
}

TEST_F(IdentityTest, EachOwnerHasItsMetrics) {
  const std::string data(1000, 'x');
  client::Client alice = As(alice_.token), bob = As(bob_.token);
  for (int i = 0; i < 3; ++i) EXPECT_THAT(alice.Reduce({.x = Bytes(data)}, kTimeout), IsOk());
  EXPECT_THAT(bob.Reduce({.x = Bytes(data), .variant = "none"}, kTimeout),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const auto tensor = bob.Put(Bytes(std::string(4096, 'x')), kTimeout);
  ASSERT_THAT(tensor, IsOk());
  const auto metrics = [&] {
    int status = 0;
    return daemon_.Get("/metrics", &status, "authorization: Bearer " + alice_.token + "\r\n");
  };
  const std::string text = metrics();
  EXPECT_THAT(text, HasSubstr("warpline_owner_requests_total{code=\"OK\",owner=\"token:alice\"} 3\n"));
  EXPECT_THAT(text,
              HasSubstr("warpline_owner_requests_total{code=\"INVALID_ARGUMENT\",owner=\"token:bob\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("warpline_owner_resident_bytes{owner=\"token:bob\"} 4096\n"));
  EXPECT_THAT(text, Not(HasSubstr("warpline_owner_device_seconds_total{owner=\"token:alice\"} 0\n")));
  EXPECT_THAT(text, Not(HasSubstr(alice_.token)));
}

TEST_F(IdentityTest, EachOwnerIsToldItsOwnLimitOfRegions) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/warpline_identity_", ::getpid(), ".sock");
  const Daemon daemon(
      {"--tokens=" + Write(alice_.table + bob_.table + "region-bytes = \"8M\"\n"), "--listen=unix:" + path});
  const auto limit_of = [&](const std::string& token) {
    client::Client owner("unix:" + path, {.channel = {.token = token}});
    const auto info = owner.GetInfo(kTimeout);
    EXPECT_THAT(info, IsOk());
    return info.ok() ? info->limits().max_region_bytes() : 0;
  };
  EXPECT_EQ(limit_of(bob_.token), 8 << 20);
  EXPECT_GT(limit_of(alice_.token), 8 << 20);
}

TEST_F(IdentityTest, ATokenThatIsTakenOutOfTheFileCountsNoMore) {
  client::Client alice = As(alice_.token), bob = As(bob_.token);
  EXPECT_THAT(bob.GetInfo(kTimeout), IsOk());
  Write(alice_.table);
  const absl::Time latest = absl::Now() + absl::Minutes(1);
  while (bob.GetInfo(kTimeout).ok() && absl::Now() < latest) absl::SleepFor(absl::Milliseconds(20));
  EXPECT_THAT(bob.GetInfo(kTimeout).status(), StatusIs(absl::StatusCode::kUnauthenticated));
  EXPECT_THAT(alice.GetInfo(kTimeout), IsOk());
}

TEST_F(IdentityTest, TheCommandLineReadsItsTokenFromAFile) {
  const std::string secret = path_ + ".alice";
  std::ofstream(secret) << alice_.token << "\n";
  const std::string info =
      absl::StrCat(std::getenv("WARPLINE_CLI"), " --server ", daemon_.address(), " info");
  EXPECT_EQ(std::system(absl::StrCat(info, " --token-file ", secret, " >", path_, ".out").c_str()), 0);
  EXPECT_EQ(std::system(absl::StrCat("WARPLINE_TOKEN_FILE=", secret, " ", info, " >", path_, ".out").c_str()),
            0);
  EXPECT_NE(std::system(absl::StrCat(info, " >", path_, ".out 2>&1").c_str()), 0);
  EXPECT_THAT(TextOf(path_ + ".out"), HasSubstr("UNAUTHENTICATED"));
  EXPECT_NE(std::system(absl::StrCat(info, " --token-file ", path_, ".absent 2>", path_, ".out").c_str()), 0);
  EXPECT_THAT(TextOf(path_ + ".out"), HasSubstr("--token-file="));
  std::remove((path_ + ".out").c_str());
  std::remove(secret.c_str());
}

TEST(TokensFileTest, ADaemonDoesNotBeginWithAFileThatMakesNoSense) {
  const std::string path = absl::StrCat(::testing::TempDir(), "/warpline_bad_tokens_", ::getpid());
  std::ofstream(path) << "[owner.\"token:alice\"]\nweight = 2\n";
  const std::string line = absl::StrCat(
      std::getenv("WARPLINED"), " --backend=cpu --metrics-listen= --tokens=", path, " >", path, ".out 2>&1");
  EXPECT_NE(std::system(line.c_str()), 0);
  EXPECT_THAT(TextOf(path + ".out"), HasSubstr("sha256 is missing"));
  std::remove(path.c_str());
  std::remove((path + ".out").c_str());
}

}  // namespace
}  // namespace warpline
