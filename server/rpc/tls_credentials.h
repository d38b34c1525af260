// gRPC's side of the server's certificates, and who a client is by its own.
#ifndef WARPLINE_SERVER_RPC_TLS_CREDENTIALS_H_
#define WARPLINE_SERVER_RPC_TLS_CREDENTIALS_H_

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>

#include <memory>
#include <string>

#include "server/tls/certificate_store.h"

namespace warpline {

// Each connection that begins gets the store's certificates of that moment; those that are open stay as they
// are. If the store verifies clients, one without a certificate that the CA has signed does not get through,
// and none resumes an earlier session.
// The store outlives the server that has these credentials.
//
// gRPC's FileWatcherCertificateProvider is not used: it hands on a key and a certificate that do not belong
// together, with which no new connection succeeds until the next change.
std::shared_ptr<grpc::ServerCredentials> NewTlsCredentials(const CertificateStore& store);

// "cert:<subject of the client's certificate>", the subject as gRPC prints it, for a connection whose client
// has shown a certificate, which was then verified, and "cert:" if it has none; "anonymous" for any other.
std::string PeerIdentity(const grpc::AuthContext& context);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_TLS_CREDENTIALS_H_
