// The TLS configuration of a client, checked, in the forms that gRPC and OpenSSL need.
#ifndef WARPLINE_CLIENT_SRC_TLS_H_
#define WARPLINE_CLIENT_SRC_TLS_H_

#include <grpcpp/security/credentials.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "warpline/options.h"

namespace warpline::client {

// True if a channel to this target must speak TLS. A unix socket never speaks TLS, whatever the options say.
bool SpeaksTls(const std::string& target, const TlsOptions& tls);

// Returns the credentials for a channel to this target; insecure ones if it must not speak TLS.
// InvalidArgument if a file cannot be read, holds no certificate or key, or the key does not match the
// certificate. The error names the option, the file and the reason.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const std::string& target,
                                                                         const TlsOptions& tls);

struct SslContextDeleter {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, SslContextDeleter>;

// Makes a context for clients with these CAs and this certificate. No other CA is trusted. Errors are those
// of CredentialsFor.
absl::StatusOr<SslContext> NewClientContext(const TlsOptions& tls);

// Returns the subject or issuer of a certificate, as RFC 2253 writes it: "CN=gpu-node,O=Example".
std::string Printed(const X509_NAME* name);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_TLS_H_
