#include "server/rpc/identify.h"

#include <string_view>

#include "server/rpc/tls_credentials.h"

namespace warpline {
namespace {

constexpr char kAuthorization[] = "authorization";

}  // namespace

std::function<absl::StatusOr<OwnerId>(const grpc::ServerContext&)> IdentifyBy(const Identities* identities) {
  if (identities == nullptr) return nullptr;
  return [identities](const grpc::ServerContext& context) -> absl::StatusOr<OwnerId> {
    const auto& metadata = context.client_metadata();
    // If there are several headers, none is more trustworthy than the others.
    if (metadata.count(kAuthorization) > 1) {
      return absl::UnauthenticatedError("there is more than one authorization header");
    }
    const auto header = metadata.find(kAuthorization);
    const std::string_view authorization =
        header == metadata.end() ? "" : std::string_view(header->second.data(), header->second.size());
    return identities->Identify(authorization, PeerIdentity(*context.auth_context()));
  };
}

std::function<bool(const std::string& authorization)> KnowsToken(const Identities& identities) {
  return [&identities](const std::string& authorization) {
    return !authorization.empty() && identities.Identify(authorization, "anonymous").ok();
  };
}

}  // namespace warpline
