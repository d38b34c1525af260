#include "server/rpc/tls_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "server/base/mutex.h"
#include "server/rpc/wrap_credentials.h"

namespace warpline {
namespace {

// gRPC's C++ interface to changing certificates passes on a key and a certificate one after the other, so
// this class uses the interface below it.
class Fetcher {
 public:
  explicit Fetcher(const CertificateStore& store) : store_(store) {}

  // gRPC calls this when the server starts, and for each new connection.
  static grpc_ssl_certificate_config_reload_status Fetch(void* self,
                                                         grpc_ssl_server_certificate_config** config) {
    return static_cast<Fetcher*>(self)->Fetch(config);
  }

 private:
  grpc_ssl_certificate_config_reload_status Fetch(grpc_ssl_server_certificate_config** config) {
    const std::shared_ptr<const Certificates> current = store_.current();
    MutexLock lock(&mutex_);
    // gRPC lets clients resume sessions, and does not check then whether a certificate has expired since.
    // Each new configuration has new session keys, so no session can be resumed.
    if (current == fetched_ && !store_.verifies_clients())
      return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    const grpc_ssl_pem_key_cert_pair pair = {current->key_pem.c_str(), current->chain_pem.c_str()};
    // gRPC 1.51 aborts the process for a null, and does not accept an empty list. This value is not used if
    // clients are not asked for certificates.
    const std::string& client_ca = store_.verifies_clients() ? current->client_ca_pem : current->chain_pem;
    *config = grpc_ssl_server_certificate_config_create(client_ca.c_str(), &pair, 1);
    fetched_ = current;
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  const CertificateStore& store_;
  Mutex mutex_;
  std::shared_ptr<const Certificates> fetched_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> NewTlsCredentials(const CertificateStore& store) {
  const auto request = store.verifies_clients() ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                                : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE;
  const auto fetcher = std::make_shared<Fetcher>(store);
  return WrapCredentials(grpc_ssl_server_credentials_create_with_options(
                             grpc_ssl_server_credentials_create_options_using_config_fetcher(
                                 request, Fetcher::Fetch, fetcher.get())),
                         fetcher);
}

std::string PeerIdentity(const grpc::AuthContext& context) {
  // Other properties describe the connection, or are claims of the client without proof.
  if (!context.IsPeerAuthenticated()) return "anonymous";
  const std::vector<grpc::string_ref> subjects = context.FindPropertyValues(GRPC_X509_SUBJECT_PROPERTY_NAME);
  if (subjects.size() != 1) return "cert:";
  return absl::StrCat("cert:", std::string(subjects[0].data(), subjects[0].size()));
}

}  // namespace warpline
