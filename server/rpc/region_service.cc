#include "server/rpc/region_service.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kernels/status_macros.h"
#include "server/base/errors.h"
#include "server/rpc/answer.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

void RegionService::Open(UnaryCall& call) {
  AnswerCall<v1::OpenRequest, v1::OpenResponse>(
      call, [&](const v1::OpenRequest& request) -> absl::StatusOr<v1::OpenResponse> {
        // The store itself returns an error if regions are turned off.
        if (!has_socket_ && regions_.options().max_bytes > 0) {
          return absl::UnimplementedError(
              "this server shares no memory: it has no region socket (--regions, or --listen=unix:PATH)");
        }
        if (request.size_bytes() < 0) {
          return FieldError("size_bytes", absl::StrCat(request.size_bytes(), " is not above 0"));
        }
        v1::OpenResponse response;
        ASSIGN_OR_RETURN(*response.mutable_ticket(),
                         regions_.Open(call.caller(), static_cast<std::size_t>(request.size_bytes())));
        response.set_ttl_seconds(absl::ToDoubleSeconds(regions_.options().ticket_ttl));
        return response;
      });
}

}  // namespace warpline
