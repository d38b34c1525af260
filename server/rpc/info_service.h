// Answers what this server is and can do.
#ifndef WARPLINE_SERVER_RPC_INFO_SERVICE_H_
#define WARPLINE_SERVER_RPC_INFO_SERVICE_H_

#include <grpcpp/support/byte_buffer.h>

#include <cstdint>
#include <string>

#include "server/device/backend.h"
#include "server/options.h"

namespace warpline {

class UnaryCall;

// Immutable. The answer is made once, at construction.
class InfoService {
 public:
  struct Build {
    std::string version;
    std::string revision;
  };
  // `max_region_bytes` is 0 if there are no shared regions.
  InfoService(const Build& build, const ServerOptions& options, const Backend& backend,
              std::int64_t max_region_bytes);
  void GetInfo(UnaryCall& call) const;

 private:
  std::string response_;
};

// Serves EchoService: sends the message back without looking at it.
void Echo(UnaryCall& call);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_INFO_SERVICE_H_
