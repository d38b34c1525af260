// Reads and checks the files of --tls-cert, --tls-key and --tls-client-ca.
#ifndef WARPLINE_SERVER_TLS_CERTIFICATES_H_
#define WARPLINE_SERVER_TLS_CERTIFICATES_H_

#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/tls/tls_files.h"

namespace warpline {

// The contents of the files, after checking that they fit together.
struct Certificates {
  std::string chain_pem, key_pem;
  std::string client_ca_pem;  // empty: clients show no certificate
  std::string subject;        // of the server's certificate, in the form of RFC 2253: "CN=gpu-node,O=Example"
  absl::Time not_after;       // when the server's certificate expires
};

// The bytes of the files, which are compared to detect changes.
struct TlsFileContents {
  std::string cert, key, client_ca;
  bool operator==(const TlsFileContents&) const = default;
};

// INVALID_ARGUMENT naming the flag, the file and the reason, if a file does not exist, cannot be read, is not
// a regular file or is larger than 1 MiB.
absl::StatusOr<TlsFileContents> ReadTlsFiles(const TlsFiles& files);

// INVALID_ARGUMENT naming the flag, the file and the reason: the file contains no PEM certificate or private
// key; the key needs a pass phrase; the key belongs to another certificate; the certificate is not valid yet
// or no longer valid at `now`; or OpenSSL refuses it, for example because its key is too short.
absl::StatusOr<Certificates> CheckCertificates(const TlsFiles& files, TlsFileContents contents,
                                               absl::Time now);

struct SslContextDeleter {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, SslContextDeleter>;

// Returns a context for servers, with TLS 1.2 and 1.3 and without resumption of sessions. If there is a CA
// for clients, they are asked for a certificate. They need not show one, but one that this CA has not signed
// is refused. Null if OpenSSL fails, which CheckCertificates excludes.
SslContext NewServerContext(const Certificates& certificates);

}  // namespace warpline

#endif  // WARPLINE_SERVER_TLS_CERTIFICATES_H_
