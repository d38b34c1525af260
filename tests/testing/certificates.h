// Certificates for tests of TLS, made anew for each.
#ifndef WARPLINE_TESTS_TESTING_CERTIFICATES_H_
#define WARPLINE_TESTS_TESTING_CERTIFICATES_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace warpline {

// A certificate and its key, both PEM.
struct TestCertificate {
  std::string cert, key;
};

struct TestCertificateOptions {
  std::string common_name = "test";
  std::string alternative_names = "DNS:localhost,IP:127.0.0.1";  // as openssl.cnf writes them; empty: none
  absl::Duration valid_from = -absl::Hours(1);                   // both from now
  absl::Duration valid_until = absl::Hours(24);
  int rsa_bits = 0;  // 0: a P-256 key
};

class TestCa {
 public:
  explicit TestCa(const std::string& name = "test CA");
  const std::string& cert() const { return cert_; }
  // For servers and for clients.
  TestCertificate Issue(const TestCertificateOptions& options = {}) const;

 private:
  std::shared_ptr<EVP_PKEY> key_;
  std::shared_ptr<X509> certificate_;
  std::string cert_;
};

// Signed by its own key.
TestCertificate SelfSigned(const TestCertificateOptions& options = {});

// A folder of its own, which goes with what is in it.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  // Replaces the file in one step, and returns its path.
  std::string Put(const std::string& name, const std::string& bytes) const;

 private:
  std::string path_;
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_TESTING_CERTIFICATES_H_
