// Tells clients what this server is and can do.
#ifndef WARPLINE_SERVER_RPC_INFO_SERVICE_H_
#define WARPLINE_SERVER_RPC_INFO_SERVICE_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <functional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "server/base/mutex.h"
#include "server/base/owner.h"
#include "server/device/backend.h"
#include "server/settings/options.h"

namespace warpline {

class UnaryCall;

// Thread-safe. The answer is built at construction, except for the limits that may change and those that
// depend on the caller.
class InfoService {
 public:
  struct Build {
    std::string version;
    std::string revision;
  };
  // The limits that differ from caller to caller.
  struct OwnLimits {
    std::function<std::size_t(const Caller&)> upload_bytes;
    std::function<std::size_t(const Caller&)> region_bytes;  // null if there are no shared regions
  };
  InfoService(const Build& build, const ServerOptions& options, const Backend& backend, OwnLimits limits);
  // Takes over the limits that may change.
  void SetLimits(const ServerOptions& options);
  void GetInfo(UnaryCall& call) const;

 private:
  const OwnLimits limits_;
  const bool cuda_;
  std::string response_;
  mutable Mutex mutex_;
  std::string changing_ ABSL_GUARDED_BY(mutex_);  // more of the response
};

// Serves EchoService: returns the message unchanged and unparsed.
void Echo(UnaryCall& call);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_INFO_SERVICE_H_
