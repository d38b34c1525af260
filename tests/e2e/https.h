// A client of the metrics port over HTTPS.
#ifndef WARPLINE_TESTS_E2E_HTTPS_H_
#define WARPLINE_TESTS_E2E_HTTPS_H_

#include <string>

#include "tests/testing/certificates.h"

namespace warpline {

struct HttpsReply {
  std::string error;  // why there is no answer; empty if there is one
  int status = 0;
  std::string body;
  std::string subject;  // of the server's certificate
};

// GET at "host:port", a numeric IPv4 host. `ca`: PEM, the only one that is trusted. `client`: what to show if
// the server asks; nothing if it is empty.
HttpsReply HttpsGet(const std::string& address, const std::string& path, const std::string& ca,
                    const TestCertificate& client = {});

}  // namespace warpline

#endif  // WARPLINE_TESTS_E2E_HTTPS_H_
