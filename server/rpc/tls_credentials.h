// Gives the server's certificates to gRPC, and identifies a client by its own certificate.
#ifndef WARPLINE_SERVER_RPC_TLS_CREDENTIALS_H_
#define WARPLINE_SERVER_RPC_TLS_CREDENTIALS_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "server/tls/certificate_store.h"

namespace warpline {

// Each new connection gets the store's certificates of that moment; open connections keep theirs. If the
// store verifies clients, a client without a certificate signed by the CA is refused, and no client can
// resume an earlier session. The store outlives the server that has these credentials.
//
// gRPC's FileWatcherCertificateProvider is not used: it may pass on a key and a certificate that do not
// match, and then no new connection succeeds until the next change.
std::shared_ptr<grpc::ServerCredentials> NewTlsCredentials(const CertificateStore& store);

// Returns "cert:" and the subject of the client's verified certificate, as gRPC prints it, or only "cert:" if
// it has no subject. "anonymous" for connections without a verified certificate.
std::string PeerIdentity(const grpc::AuthContext& context);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_TLS_CREDENTIALS_H_
