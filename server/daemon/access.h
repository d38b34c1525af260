// Decides who may call, and logs the calls.
#ifndef WARPLINE_SERVER_DAEMON_ACCESS_H_
#define WARPLINE_SERVER_DAEMON_ACCESS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/base/owner.h"
#include "server/base/owner_limits.h"
#include "server/identity/identities.h"
#include "server/observe/access_log.h"
#include "server/observe/metrics.h"
#include "server/observe/owner_metrics.h"
#include "server/settings/options.h"
#include "server/tls/certificate_store.h"

namespace warpline {

// Members are null if they are not configured.
struct Access {
  // Errors are those of the files that the options name. The metrics outlive the result.
  static absl::StatusOr<Access> Open(const ServerOptions& options, Metrics& metrics);

  std::unique_ptr<CertificateStore> certificates;
  std::unique_ptr<Identities> identities;
  // These functions use the identities.
  LimitsOf limits_of;
  std::function<std::string(OwnerId)> name_of;
  std::unique_ptr<OwnerMetrics> owner_metrics;
  std::unique_ptr<AccessLog> log;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_ACCESS_H_
