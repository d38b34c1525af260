#include "server/daemon/access.h"

#include "absl/time/time.h"
#include "kernels/status_macros.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

// The maximum number of owners with metrics of their own, because each has some ten series. Later owners
// share the label "other".
constexpr int kOwnersWithSeries = 50;

}  // namespace

absl::StatusOr<Access> Access::Open(const ServerOptions& options, Metrics& metrics) {
  Access access;
  if (options.tls.configured()) {
    ASSIGN_OR_RETURN(access.certificates,
                     CertificateStore::Open(options.tls, [&metrics](const Certificates& current) {
                       metrics.SetCertificateExpiry(current.not_after);
                     }));
    const std::shared_ptr<const Certificates> current = access.certificates->current();
    Log("info", "TLS",
        {{"subject", current->subject},
         {"expires", absl::FormatTime(absl::RFC3339_sec, current->not_after, absl::UTCTimeZone())},
         {"client_certificates", access.certificates->verifies_clients() ? "required" : "none"}});
  }
  if (!options.tokens.empty() || !options.tls.client_ca.empty()) {
    ASSIGN_OR_RETURN(access.identities, Identities::Open({.file = options.tokens}));
    Identities* const identities = access.identities.get();
    access.limits_of = [identities](OwnerId owner) { return identities->LimitsOf(owner); };
    access.name_of = [identities](OwnerId owner) { return identities->NameOf(owner); };
    access.owner_metrics = std::make_unique<OwnerMetrics>(kOwnersWithSeries, access.name_of, metrics);
  }
  if (!options.access_log.empty()) {
    ASSIGN_OR_RETURN(access.log, AccessLog::Open(options.access_log, metrics));
  }
  return access;
}

}  // namespace warpline
