// Tests what the program says if it and the server do not agree on TLS, and that it works if they do.
#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "tests/e2e/cli.h"
#include "tests/e2e/https.h"
#include "tests/e2e/ndarray.h"
#include "tests/e2e/tls_files.h"
#include "tests/testing/grpc_version.h"

namespace warpline {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The daemon is made with flags that name files, so the files come first.
class TlsCliTest : private TlsTestFiles, public CliTest {
 protected:
  explicit TlsCliTest(bool verifies_clients = false) : CliTest(DaemonFlags(verifies_clients)) {}
  const TlsTestFiles& files() const { return *this; }
  // `warpline info`, with these flags.
  Finished Info(const std::string& flags) const { return Run("warpline info " + flags); }
  // The same, with the CA and as this client.
  Finished InfoAs(const std::string& client) const {
    return Info(files().Ca() + (client.empty() ? "" : files().AsClient(client)));
  }
};

TEST_F(TlsCliTest, TheCaIsAllThatAClientNeeds) {
  for (const std::string& flags : {files().Ca(), files().Ca() + files().AsClient("alice")}) {
    const Finished info = Info(flags);
    EXPECT_EQ(info.code, 0) << info.err;
    EXPECT_THAT(info.out, HasSubstr("transpose"));
  }
  const Finished by_environment = Run("WARPLINE_TLS_CA=" + files().ca_file + " warpline health");
  EXPECT_EQ(by_environment.code, 0) << by_environment.err;
}

TEST_F(TlsCliTest, EveryCommandAndEveryConnectionSpeaksTls) {
  Put("x.npy", ToNpy(Ndarray<float>{{2, 3}, {1, 2, 3, 4, 5, 6}}));
  const Finished finished = Run("export WARPLINE_TLS_CA=" + files().ca_file + R"(
set -e
warpline transpose x.npy -o y.npy
warpline transpose x.npy -o y.npy --transport stream
warpline run -e 'transpose(x)' x=x.npy -o z.npy
id=$(warpline put x.npy --channels 3 --quiet)
warpline get $id -o x2.npy --channels 3 --quiet
warpline transpose y.npy -o x1.npy
cmp x1.npy x2.npy
warpline tensors
warpline drop $id
warpline health
warpline bench --requests 50 --warmup 0s --channels 3
warpline bench --op echo --requests 5 --warmup 0s)");
  EXPECT_EQ(finished.code, 0) << finished.err;
}

TEST_F(TlsCliTest, SaysThatTheServerSpeaksTls) {
  for (const char* command : {"info", "bench --requests 1", "tensors"}) {
    const Finished plain = Run(std::string("warpline ") + command);
    EXPECT_EQ(plain.code, 1);
    EXPECT_THAT(plain.err, HasSubstr("the server at " + daemon_.address() +
                                     " speaks TLS, and this client does not: it needs the CA that has signed "
                                     "the server's certificate, as tls_ca (--tls-ca, $WARPLINE_TLS_CA)"))
        << command;
    EXPECT_THAT(plain.err, Not(HasSubstr("no server answers")));
  }
}

TEST_F(TlsCliTest, SaysWhoIsNotTrusted) {
  const Finished wrong_ca = Info("--tls-ca " + files().folder.Put("other.crt", TestCa("other CA").cert()));
  EXPECT_EQ(wrong_ca.code, 1);
  EXPECT_THAT(
      wrong_ca.err,
      AllOf(StartsWith("warpline: UNAVAILABLE: the certificate of the server at " + daemon_.address() +
                       " (CN=test,O=Example, issued by CN=test CA,O=Example) is not trusted by tls_ca="),
            HasSubstr("unable to get local issuer certificate")));
}

TEST_F(TlsCliTest, NamesTheFileThatIsNoGood) {
  const Finished absent = Info("--tls-ca absent.crt");
  EXPECT_EQ(absent.code, 2);
  EXPECT_THAT(absent.err, HasSubstr("tls_ca=absent.crt: No such file or directory"));
  const Finished no_ca = Info(files().AsClient("alice"));
  EXPECT_EQ(no_ca.code, 2);
  EXPECT_THAT(no_ca.err, HasSubstr("needs tls_ca, the CA of the server's certificate"));
  const Finished no_key = Info(files().Ca() + " --tls-cert " + files().folder.Path("alice.crt"));
  EXPECT_EQ(no_key.code, 2);
  EXPECT_THAT(no_key.err, HasSubstr("alice.crt: needs tls_key"));
  const Finished mismatch =
      Info(files().Ca() + " --tls-cert " + files().folder.Path("alice.crt") + " --tls-key " + files().key);
  EXPECT_EQ(mismatch.code, 2);
  EXPECT_THAT(mismatch.err, HasSubstr("server.key: is not the key of tls_cert="));
}

TEST_F(TlsCliTest, TheMetricsPortSpeaksHttps) {
  const std::string metrics = daemon_.metrics_address();
  const HttpsReply reply = HttpsGet(metrics, "/metrics", files().ca.cert());
  EXPECT_EQ(reply.status, 200) << reply.error;
  EXPECT_THAT(reply.body, HasSubstr("\nwarpline_tls_certificate_expiry_timestamp_seconds "));
  EXPECT_NE(HttpsGet(metrics, "/metrics", TestCa().cert()).error, "");
  int status = 0;
  EXPECT_EQ(daemon_.Get("/healthz", &status), "this port speaks HTTPS\n");
  EXPECT_EQ(status, 400);
}

class MutualTlsCliTest : public TlsCliTest {
 protected:
  MutualTlsCliTest() : TlsCliTest(/*verifies_clients=*/true) {}
};

TEST_F(MutualTlsCliTest, TakesClientsWhoseCertificateTheCaHasSigned) {
  const Finished info = InfoAs("alice");
  EXPECT_EQ(info.code, 0) << info.err;
}

TEST_F(MutualTlsCliTest, SaysWhatIsWrongWithTheOthers) {
  const Finished none = InfoAs("");
  EXPECT_EQ(none.code, 1);
  // Newer versions do not tell clients which authorities they accept.
  const std::string signed_by = testing::kIsGrpc151 ? ", signed by CN=test CA,O=Example" : "";
  EXPECT_THAT(none.err, HasSubstr(absl::StrCat("wants a client certificate", signed_by,
                                               ": give tls_cert and tls_key")));
  files().PutClient("mallory", TestCa("other CA").Issue({.common_name = "mallory"}));
  const Finished wrong_ca = InfoAs("mallory");
  EXPECT_EQ(wrong_ca.code, 1);
  EXPECT_THAT(
      wrong_ca.err,
      AllOf(HasSubstr("does not accept this client's certificate tls_cert="),
            HasSubstr(absl::StrCat("(CN=mallory,O=Example, issued by CN=other CA,O=Example): it wants one",
                                   signed_by))));
  files().PutClient("self", SelfSigned({.common_name = "alice"}));
  EXPECT_THAT(InfoAs("self").err,
              HasSubstr("(CN=alice,O=Example, issued by CN=alice,O=Example): it wants one"));
  files().PutClient("old", files().ca.Issue({.valid_until = -absl::Minutes(1)}));
  EXPECT_THAT(InfoAs("old").err, HasSubstr("which has expired): it wants one"));
}

TEST_F(MutualTlsCliTest, ProbesNeedNoCertificateAndMetricsDo) {
  const std::string metrics = daemon_.metrics_address();
  const std::string ca = files().ca.cert();
  EXPECT_EQ(HttpsGet(metrics, "/healthz", ca).status, 200);
  EXPECT_EQ(HttpsGet(metrics, "/readyz", ca).status, 200);
  const HttpsReply refused = HttpsGet(metrics, "/metrics", ca);
  EXPECT_EQ(refused.status, 403);
  EXPECT_THAT(refused.body, HasSubstr("needs a client certificate"));
  EXPECT_EQ(HttpsGet(metrics, "/metrics", ca, files().ca.Issue()).status, 200);
  EXPECT_NE(HttpsGet(metrics, "/metrics", ca, TestCa().Issue()).error, "");
}

// A server of gRPC's, with a certificate that no client should take.
class BadServerCliTest : public CliTest {
 protected:
  // Returns the error of `warpline info` for such a server.
  std::string InfoError(const TestCertificate& certificate, const std::string& host = "127.0.0.1") const {
    grpc::SslServerCredentialsOptions options(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
    options.pem_key_cert_pairs = {{certificate.key, certificate.cert}};
    grpc::ServerBuilder builder;
    grpc::AsyncGenericService service;
    builder.RegisterAsyncGenericService(&service);
    const std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::SslServerCredentials(options), &port);
    const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
    // gRPC's servers go on with a connection only while somebody looks at their queue.
    std::thread polling([&queue] {
      void* tag = nullptr;
      bool ok = false;
      while (queue->Next(&tag, &ok)) {
      }
    });
    const Finished info = Run("warpline info --server " + host + ":" + std::to_string(port) + files_.Ca());
    server->Shutdown();
    queue->Shutdown();
    polling.join();
    EXPECT_EQ(info.code, 1);
    return info.err;
  }
  const TlsTestFiles files_;
};

TEST_F(BadServerCliTest, SaysThatACertificateIsSelfSigned) {
  EXPECT_THAT(InfoError(SelfSigned()), HasSubstr("self-signed certificate"));
}

TEST_F(BadServerCliTest, SaysThatACertificateHasExpired) {
  EXPECT_THAT(InfoError(files_.ca.Issue({.valid_until = -absl::Minutes(1)})),
              HasSubstr("(CN=test,O=Example, issued by CN=test CA,O=Example) has expired (gRPC: "));
}

TEST_F(BadServerCliTest, SaysThatACertificateIsOfAnotherHost) {
  const TestCertificate other = files_.ca.Issue({.alternative_names = "DNS:gpu-node"});
  EXPECT_THAT(InfoError(other),
              HasSubstr("is not for 127.0.0.1: its subjectAltName must have the name or address "
                        "that clients use"));
  EXPECT_THAT(InfoError(other, "localhost"), HasSubstr("is not for localhost: "));
}

TEST_F(CliTest, SaysThatTheServerDoesNotSpeakTls) {
  const TlsTestFiles files;
  const Finished info = Run("warpline info" + files.Ca());
  EXPECT_EQ(info.code, 1);
  EXPECT_THAT(info.err, HasSubstr("the server at " + daemon_.address() +
                                  " does not speak TLS, and this client was given tls_ca=" + files.ca_file));
  const Finished metrics = Run("warpline info --server " + daemon_.metrics_address() + files.Ca());
  EXPECT_THAT(metrics.err, HasSubstr("does not speak TLS"));
}

}  // namespace
}  // namespace warpline
