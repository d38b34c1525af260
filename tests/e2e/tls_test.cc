// TLS between real processes: how a daemon begins, and certificates that change while it serves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/e2e/daemon.h"
#include "tests/e2e/https.h"
#include "tests/e2e/requests.h"
#include "tests/e2e/tls_files.h"
#include "tests/testing/patience.h"

namespace warpline {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Returns the output of a daemon with these flags, which ends with an error.
std::string RefusalOf(const std::string& flags) {
  const TestFolder folder;
  const std::string output = folder.Path("output.txt");
  const std::string line = std::string(std::getenv("WARPLINED")) +
                           " --backend=cpu --metrics-listen= " + flags + " >" + output + " 2>&1";
  EXPECT_NE(std::system(line.c_str()), 0) << flags;
  std::ifstream file(output);
  const std::string said((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(said, Not(HasSubstr("READY")));
  return said;
}

TEST(TlsTest, ADaemonDoesNotBeginWithFilesThatAreNoGood) {
  const TlsTestFiles files;
  EXPECT_THAT(RefusalOf("--tls-cert=absent --tls-key=" + files.key),
              HasSubstr("--tls-cert=absent: No such file or directory"));
  EXPECT_THAT(RefusalOf("--tls-cert=" + files.cert + " --tls-key=" + files.folder.Path("alice.key")),
              HasSubstr("alice.key: is not the key of the certificate CN=test,O=Example in --tls-cert="));
  files.PutServer(files.ca.Issue({.valid_until = -absl::Minutes(1)}));
  EXPECT_THAT(RefusalOf("--tls-cert=" + files.cert + " --tls-key=" + files.key),
              HasSubstr("the certificate CN=test,O=Example expired at "));
}

TEST(TlsTest, BeyondLoopbackADaemonBeginsWithTlsOrAWordOnly) {
  EXPECT_THAT(RefusalOf("--listen=0.0.0.0:0"), HasSubstr("--insecure allows it without"));
  EXPECT_THAT(RefusalOf("--metrics-listen=127.0.0.1:0,0.0.0.0:0"), HasSubstr("must be one host:port"));
  const TlsTestFiles files;
  std::vector<std::string> flags = files.DaemonFlags(/*verifies_clients=*/false);
  flags.push_back("--listen=0.0.0.0:0");
  flags.push_back("--metrics-listen=0.0.0.0:0");
  const Daemon with_tls(flags);
  const Daemon with_a_word({"--listen=0.0.0.0:0", "--metrics-listen=0.0.0.0:0", "--insecure"});
}

// Sends small requests without end, each over a connection of its own or all over one.
class Load {
 public:
  Load(const Daemon& daemon, const std::string& ca, bool each_connects) {
    thread_ = std::thread([this, &daemon, ca, each_connects] {
      std::shared_ptr<grpc::Channel> channel = TlsChannel(daemon, ca);
      while (!stopping_) {
        if (each_connects) channel = TlsChannel(daemon, ca);
        grpc::ClientContext context;
        SetTimeout(context, absl::Minutes(1));
        v1::TransposeResponse response;
        const grpc::Status status =
            v1::KernelService::NewStub(channel)->Transpose(&context, IotaTranspose(3, 4), &response);
        ++(status.ok() ? succeeded_ : failed_);
        if (!status.ok()) ADD_FAILURE() << status.error_message();
      }
    });
  }
  ~Load() {
    stopping_ = true;
    thread_.join();
    EXPECT_EQ(failed_, 0);
  }
  // Returns when so many more calls have succeeded.
  void Await(int calls) const {
    const int until = succeeded_ + calls;
    AwaitThat("calls", [&] { return succeeded_ >= until || failed_ != 0; });
  }

 private:
  static std::shared_ptr<grpc::Channel> TlsChannel(const Daemon& daemon, const std::string& ca) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ca;
    return daemon.Channel(grpc::SslCredentials(options));
  }

  std::atomic<bool> stopping_ = false;
  std::atomic<int> succeeded_ = 0, failed_ = 0;
  std::thread thread_;
};

// Returns the subject of the certificate that a new connection is shown.
std::string ShownSubject(const Daemon& daemon, const std::string& ca) {
  return HttpsGet(daemon.metrics_address(), "/healthz", ca).subject;
}

TEST(TlsTest, ACertificateIsReplacedWithoutAFailedCall) {
  const TlsTestFiles files;
  Daemon daemon(files.DaemonFlags(/*verifies_clients=*/false));
  const Load over_one(daemon, files.ca.cert(), /*each_connects=*/false);
  const Load over_many(daemon, files.ca.cert(), /*each_connects=*/true);
  over_many.Await(20);
  EXPECT_EQ(ShownSubject(daemon, files.ca.cert()), "CN=test,O=Example");
  const TestCertificate next = files.ca.Issue({.common_name = "next"});

  // Half-way through, the files do not fit together, and the pair before goes on.
  files.folder.Put("server.crt", next.cert);
  absl::SleepFor(absl::Seconds(3));  // the daemon has looked at least once, most likely
  over_many.Await(20);
  EXPECT_EQ(ShownSubject(daemon, files.ca.cert()), "CN=test,O=Example");

  files.folder.Put("server.key", next.key);
  AwaitThat("the next certificate",
            [&] { return ShownSubject(daemon, files.ca.cert()) == "CN=next,O=Example"; });
  over_one.Await(20);
  over_many.Await(20);
}

TEST(TlsTest, AnotherClientCaIsTakenOver) {
  const TlsTestFiles files;
  Daemon daemon(files.DaemonFlags(/*verifies_clients=*/true));
  const TestCa next("next CA");
  const std::string ca = files.ca.cert(), metrics = daemon.metrics_address();
  const TestCertificate client = next.Issue();
  EXPECT_NE(HttpsGet(metrics, "/metrics", ca, client).error, "");
  files.folder.Put("ca.crt", ca + next.cert());
  AwaitThat("the next CA", [&] { return HttpsGet(metrics, "/metrics", ca, client).status == 200; });
  EXPECT_EQ(HttpsGet(metrics, "/metrics", ca, files.ca.Issue()).status, 200)
      << "the CA before is still there";
  for (const TestCertificate& each : {client, files.ca.Issue()}) {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ca;
    options.pem_cert_chain = each.cert;
    options.pem_private_key = each.key;
    grpc::ClientContext context;
    SetTimeout(context, absl::Minutes(1));
    v1::GetInfoResponse response;
    const auto stub = v1::InfoService::NewStub(daemon.Channel(grpc::SslCredentials(options)));
    const grpc::Status status = stub->GetInfo(&context, {}, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
}

TEST(TlsTest, UnixSocketsStayPlain) {
  const TlsTestFiles files;
  const std::string path = "unix:" + files.folder.Path("socket");
  std::vector<std::string> flags = files.DaemonFlags(/*verifies_clients=*/true);
  flags.push_back("--listen=127.0.0.1:0," + path);
  const Daemon daemon(flags);
  const auto channel = grpc::CreateChannel(path, grpc::InsecureChannelCredentials());
  grpc::ClientContext context;
  SetTimeout(context, absl::Minutes(1));
  v1::GetInfoResponse response;
  const grpc::Status status = v1::InfoService::NewStub(channel)->GetInfo(&context, {}, &response);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

}  // namespace
}  // namespace warpline
