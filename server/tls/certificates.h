// The files of --tls-cert, --tls-key and --tls-client-ca, read and checked.
#ifndef WARPLINE_SERVER_TLS_CERTIFICATES_H_
#define WARPLINE_SERVER_TLS_CERTIFICATES_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/tls/tls_files.h"

namespace warpline {

// The contents of the files, once they are known to fit together.
struct Certificates {
  std::string chain_pem, key_pem;
  std::string client_ca_pem;  // empty: clients show no certificate
  std::string subject;        // of the server's certificate, as RFC 2253 writes it: "CN=gpu-node,O=Example"
  absl::Time not_after;       // when the server's certificate expires
};

// The bytes of the files, which are read anew to see whether they have changed.
struct TlsFileContents {
  std::string cert, key, client_ca;
  bool operator==(const TlsFileContents&) const = default;
};

// INVALID_ARGUMENT naming the flag, the file and the reason, if a file is not there, cannot be read, is no
// regular file or is larger than 1 MiB.
absl::StatusOr<TlsFileContents> ReadTlsFiles(const TlsFiles& files);

// INVALID_ARGUMENT naming the flag, the file and the reason: no PEM certificate or private key in it; a key
// that needs a pass phrase; a key of another certificate; a certificate that is not valid yet or not any more
// at `now`; one that OpenSSL refuses, as one with a key that is too short.
absl::StatusOr<Certificates> CheckCertificates(const TlsFiles& files, TlsFileContents contents,
                                               absl::Time now);

struct SslContextDeleter {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, SslContextDeleter>;

// For servers, with TLS 1.2 and 1.3, each session from its beginning. Clients are asked for a certificate if
// there is a CA for it, need not show one, and do not get through with one that this CA has not signed. Null
// if OpenSSL refuses, which CheckCertificates excludes.
SslContext NewServerContext(const Certificates& certificates);

}  // namespace warpline

#endif  // WARPLINE_SERVER_TLS_CERTIFICATES_H_
