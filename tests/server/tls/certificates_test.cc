#include "server/tls/certificates.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <string>

#include "absl/time/clock.h"
#include "tests/testing/certificates.h"

namespace warpline {
namespace {

class CertificatesTest : public ::testing::Test {
 protected:
  absl::StatusOr<Certificates> Read(absl::Time now = absl::Now()) const {
    const absl::StatusOr<TlsFileContents> contents = ReadTlsFiles(files_);
    if (!contents.ok()) return contents.status();
    return CheckCertificates(files_, *contents, now);
  }
  // The message of the error, which is to be INVALID_ARGUMENT.
  std::string Problem(absl::Time now = absl::Now()) const {
    const absl::StatusOr<Certificates> read = Read(now);
    EXPECT_TRUE(absl::IsInvalidArgument(read.status())) << read.status();
    return std::string(read.status().message());
  }

  const TestFolder folder_;
  const TestCa ca_;
  const TestCertificate good_ = ca_.Issue({.common_name = "gpu-node"});
  TlsFiles files_{.cert = folder_.Put("tls.crt", good_.cert),
                  .key = folder_.Put("tls.key", good_.key),
                  .client_ca = folder_.Put("ca.crt", ca_.cert())};
};

TEST_F(CertificatesTest, TakesWhatFitsTogether) {
  const absl::StatusOr<Certificates> read = Read();
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->subject, "CN=gpu-node,O=Example");
  EXPECT_GT(read->not_after, absl::Now() + absl::Hours(23));
  EXPECT_EQ(read->client_ca_pem, ca_.cert());
  EXPECT_NE(NewServerContext(*read), nullptr);
}

TEST_F(CertificatesTest, TakesAChainAndNoClientCa) {
  folder_.Put("tls.crt", good_.cert + ca_.cert());
  files_.client_ca.clear();
  EXPECT_TRUE(Read().ok()) << Read().status();
}

TEST_F(CertificatesTest, NamesAFileThatCannotBeRead) {
  files_.key = folder_.Path("absent");
  EXPECT_EQ(Problem(), "--tls-key=" + files_.key + ": No such file or directory");
  files_.key = folder_.Path("");
  EXPECT_EQ(Problem(), "--tls-key=" + files_.key + ": must be a regular file");
  files_.key = folder_.Put("large", std::string((1 << 20) + 1, '\n'));
  EXPECT_EQ(Problem(), "--tls-key=" + files_.key + ": is larger than 1048576 bytes");
}

TEST_F(CertificatesTest, NamesAFileWithoutWhatItIsFor) {
  folder_.Put("tls.crt", good_.key);
  EXPECT_EQ(Problem(), "--tls-cert=" + files_.cert + ": holds no certificate in PEM form");
  folder_.Put("tls.crt", good_.cert);
  folder_.Put("tls.key", good_.cert);
  EXPECT_EQ(Problem(), "--tls-key=" + files_.key + ": holds no private key in PEM form");
  folder_.Put("tls.key", good_.key);
  folder_.Put("ca.crt", "");
  EXPECT_EQ(Problem(), "--tls-client-ca=" + files_.client_ca + ": holds no certificate in PEM form");
}

TEST_F(CertificatesTest, TakesNoPartOfAList) {
  const std::string other = TestCa("another CA").cert();
  folder_.Put("ca.crt", ca_.cert() + other.substr(0, other.size() / 2));
  const std::string problem = Problem();
  EXPECT_NE(problem.find(": its certificate number 2 cannot be read: "), std::string::npos) << problem;
}

TEST_F(CertificatesTest, NamesTheCertificateThatAKeyIsNotOf) {
  folder_.Put("tls.key", ca_.Issue().key);
  EXPECT_EQ(Problem(),
            "--tls-key=" + files_.key +
                ": is not the key of the certificate CN=gpu-node,O=Example in --tls-cert=" + files_.cert);
}

TEST_F(CertificatesTest, AsksNobodyForAPassPhrase) {
  BIO* const bio = BIO_new(BIO_s_mem());
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  PEM_write_bio_PKCS8PrivateKey(bio, key, EVP_aes_128_cbc(), "phrase", 6, nullptr, nullptr);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  folder_.Put("tls.key", std::string(data, static_cast<std::size_t>(size)));
  EVP_PKEY_free(key);
  BIO_free(bio);
  EXPECT_EQ(Problem(), "--tls-key=" + files_.key + ": needs a pass phrase, which nobody can be asked for");
}

TEST_F(CertificatesTest, NamesTheTimeOutsideOfWhichACertificateIsValid) {
  const std::string late = Problem(absl::Now() + absl::Hours(25));
  EXPECT_NE(late.find("the certificate CN=gpu-node,O=Example expired at "), std::string::npos) << late;
  const std::string early = Problem(absl::Now() - absl::Hours(2));
  EXPECT_NE(early.find("is not valid before "), std::string::npos) << early;
}

TEST_F(CertificatesTest, SaysWhatOpenSslRefuses) {
  const TestCertificate weak = ca_.Issue({.rsa_bits = 512});
  folder_.Put("tls.crt", weak.cert);
  folder_.Put("tls.key", weak.key);
  const std::string problem = Problem();
  EXPECT_NE(problem.find("key too small"), std::string::npos) << problem;
}

}  // namespace
}  // namespace warpline
