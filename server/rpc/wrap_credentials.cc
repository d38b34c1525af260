#include "server/rpc/wrap_credentials.h"

#include <utility>

namespace warpline {
namespace {

class Wrapped final : public grpc::ServerCredentials {
 public:
  Wrapped(grpc_server_credentials* credentials, std::shared_ptr<void> kept)
      : ServerCredentials(credentials), kept_(std::move(kept)) {}

  // The client's identity does not depend on the metadata of a call.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  const std::shared_ptr<void> kept_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> WrapCredentials(grpc_server_credentials* credentials,
                                                         std::shared_ptr<void> kept) {
  return std::make_shared<Wrapped>(credentials, std::move(kept));
}

}  // namespace warpline
