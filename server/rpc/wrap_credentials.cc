#include "server/rpc/wrap_credentials.h"

#include <utility>

namespace warpline {
namespace {

struct Keeper {
  std::shared_ptr<void> kept;
};

// The base that keeps is the first, so what is kept outlives the credentials.
class Wrapped final : private Keeper, public grpc::ServerCredentials {
 public:
  Wrapped(grpc_server_credentials* credentials, std::shared_ptr<void> kept)
      : Keeper{std::move(kept)}, ServerCredentials(credentials) {}

  // The client's identity does not depend on the metadata of a call.
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> WrapCredentials(grpc_server_credentials* credentials,
                                                         std::shared_ptr<void> kept) {
  return std::make_shared<Wrapped>(credentials, std::move(kept));
}

}  // namespace warpline
