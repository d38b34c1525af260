#include "server/rpc/tls_credentials.h"

#include <grpc/grpc_security.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/time/clock.h"
#include "server/base/mutex.h"
#include "server/rpc/rpc_server.h"
#include "server/rpc/unary_call.h"
#include "tests/testing/bound.h"
#include "tests/testing/certificates.h"

namespace warpline {
namespace {

// A server on a port and on a unix socket that tells its clients who they are.
class TlsCredentialsTest : public ::testing::Test {
 protected:
  void Start(bool verifies_clients) {
    const TestCertificate own = ca_.Issue();
    TlsFiles files{.cert = folder_.Put("tls.crt", own.cert), .key = folder_.Put("tls.key", own.key)};
    if (verifies_clients) files.client_ca = folder_.Put("ca.crt", ca_.cert());
    store_ = *CertificateStore::Open(files);
    const auto tell = [](UnaryCall& call) {
      const grpc::Slice client(call.Client());
      call.Respond(grpc::ByteBuffer(&client, 1));
    };
    server_ = *RpcServer::Start({.listen = Bound({"127.0.0.1:0", "unix:" + folder_.Path("socket")}),
                                 .credentials = NewTlsCredentials(*store_),
                                 .max_message_bytes = 1 << 20,
                                 .memory_quota_bytes = 64 << 20,
                                 .max_streams_per_connection = 1000,
                                 .echo = true},
                                {tell, tell, tell, tell, tell, tell}, inflater_, metrics_);
  }

  // Returns what the server says, or the code of the error.
  std::string Ask(const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                  grpc::ChannelArguments arguments = {}) const {
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    grpc::GenericStub stub(grpc::CreateCustomChannel(address, credentials, arguments));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(1));
    const grpc::Slice slice("x");
    const grpc::ByteBuffer message(&slice, 1);
    grpc::CompletionQueue queue;
    const auto reader = stub.PrepareUnaryCall(&context, "/warpline.v1.EchoService/Echo", message, &queue);
    reader->StartCall();
    grpc::ByteBuffer response;
    grpc::Status status;
    reader->Finish(&response, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    queue.Shutdown();
    if (!status.ok()) return "code " + std::to_string(status.error_code());
    std::vector<grpc::Slice> slices;
    EXPECT_TRUE(response.Dump(&slices).ok());
    std::string text;
    for (const grpc::Slice& each : slices)
      text.append(reinterpret_cast<const char*>(each.begin()), each.size());
    return text;
  }
  std::string AskOverTls(const TestCertificate& client, const grpc::ChannelArguments& arguments = {}) const {
    grpc::SslCredentialsOptions options;
    options.pem_root_certs = ca_.cert();
    options.pem_cert_chain = client.cert;
    options.pem_private_key = client.key;
    return Ask(server_->addresses().front(), grpc::SslCredentials(options), arguments);
  }

  const TestFolder folder_;
  const TestCa ca_;
  std::unique_ptr<CertificateStore> store_;
  Metrics metrics_;
  Admission admission_{{.max_jobs = 1, .max_bytes = 1}, metrics_};
  FairWorkers workers_{1};
  Inflater inflater_{admission_, workers_};
  std::unique_ptr<RpcServer> server_;
};

const std::string kUnavailable = "code " + std::to_string(grpc::StatusCode::UNAVAILABLE);

TEST_F(TlsCredentialsTest, AClientIsWhoItsCertificateSays) {
  Start(/*verifies_clients=*/true);
  EXPECT_EQ(AskOverTls(ca_.Issue({.common_name = "alice"})), "cert:CN=alice,O=Example");
  EXPECT_EQ(AskOverTls(ca_.Issue({.common_name = "bob"})), "cert:CN=bob,O=Example");
}

TEST_F(TlsCredentialsTest, OthersDoNotGetThrough) {
  Start(/*verifies_clients=*/true);
  EXPECT_EQ(AskOverTls({}), kUnavailable);
  EXPECT_EQ(AskOverTls(TestCa().Issue({.common_name = "alice"})), kUnavailable);
  EXPECT_EQ(AskOverTls(SelfSigned({.common_name = "alice"})), kUnavailable);
  EXPECT_EQ(AskOverTls(ca_.Issue({.valid_until = -absl::Minutes(1)})), kUnavailable);
  EXPECT_EQ(Ask(server_->addresses().front(), grpc::InsecureChannelCredentials()), kUnavailable);
}

TEST_F(TlsCredentialsTest, AnExpiredCertificateDoesNotComeBackWithAnEarlierSession) {
  Start(/*verifies_clients=*/true);
  grpc_ssl_session_cache* const cache = grpc_ssl_session_cache_create_lru(16);
  const grpc_arg remembers = grpc_ssl_session_cache_create_channel_arg(cache);
  grpc::ChannelArguments arguments;
  arguments.SetPointerWithVtable(remembers.key, remembers.value.pointer.p, remembers.value.pointer.vtable);
  const absl::Time end = absl::Now() + absl::Seconds(8);
  const TestCertificate brief = ca_.Issue({.common_name = "alice", .valid_until = end - absl::Now()});
  EXPECT_EQ(AskOverTls(brief, arguments), "cert:CN=alice,O=Example");
  absl::SleepFor(end + absl::Seconds(2) - absl::Now());
  EXPECT_EQ(AskOverTls(brief, arguments), kUnavailable);
  grpc_ssl_session_cache_destroy(cache);
}

TEST_F(TlsCredentialsTest, WithoutAClientCaNobodyIsAsked) {
  Start(/*verifies_clients=*/false);
  EXPECT_EQ(AskOverTls({}), "anonymous");
  EXPECT_EQ(AskOverTls(ca_.Issue({.common_name = "alice"})), "anonymous");
}

TEST_F(TlsCredentialsTest, UnixSocketsStayPlain) {
  Start(/*verifies_clients=*/true);
  EXPECT_EQ(Ask(server_->addresses().back(), grpc::InsecureChannelCredentials()), "anonymous");
}

}  // namespace
}  // namespace warpline
