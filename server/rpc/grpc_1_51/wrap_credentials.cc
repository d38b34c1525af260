#include "server/rpc/wrap_credentials.h"

#include <grpc/grpc.h>

#include <string>
#include <utility>

namespace warpline {
namespace {

class Wrapped final : public grpc::ServerCredentials {
 public:
  Wrapped(grpc_server_credentials* credentials, std::shared_ptr<void> kept)
      : credentials_(credentials), kept_(std::move(kept)) {}
  ~Wrapped() override { grpc_server_credentials_release(credentials_); }

  // The client's identity does not depend on the metadata of a call.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
  const std::shared_ptr<void> kept_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> WrapCredentials(grpc_server_credentials* credentials,
                                                         std::shared_ptr<void> kept) {
  return std::make_shared<Wrapped>(credentials, std::move(kept));
}

}  // namespace warpline
