// What a client's TLS is configured by, checked and as gRPC and OpenSSL take it.
#ifndef WARPLINE_CLIENT_SRC_TLS_H_
#define WARPLINE_CLIENT_SRC_TLS_H_

#include <grpcpp/security/credentials.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "warpline/options.h"

namespace warpline::client {

// Whether a channel to this target is to speak TLS: not over a unix socket, whatever the options say.
bool SpeaksTls(const std::string& target, const TlsOptions& tls);

// For a channel to this target: those of no TLS, if it is not to speak it. InvalidArgument naming the option,
// the file and the reason, if a file cannot be read, holds no certificate or key, or the key is not that of
// the certificate.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> CredentialsFor(const std::string& target,
                                                                         const TlsOptions& tls);

struct SslContextDeleter {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslContext = std::unique_ptr<SSL_CTX, SslContextDeleter>;

// For clients that have these CAs and this certificate, and trust nobody else. Errors are those of
// CredentialsFor.
absl::StatusOr<SslContext> NewClientContext(const TlsOptions& tls);

// The subject of a certificate or its issuer, as RFC 2253 writes it: "CN=gpu-node,O=Example".
std::string Printed(const X509_NAME* name);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_TLS_H_
