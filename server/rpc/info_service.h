// Answers what this server is and can do.
#ifndef WARPLINE_SERVER_RPC_INFO_SERVICE_H_
#define WARPLINE_SERVER_RPC_INFO_SERVICE_H_

#include <grpcpp/support/byte_buffer.h>

#include <string>

#include "server/device/backend.h"
#include "server/options.h"

namespace warpline {

class UnaryCall;

// Immutable: the answer is made once.
class InfoService {
 public:
  struct Build {
    std::string version;
    std::string revision;
  };
  InfoService(const Build& build, const ServerOptions& options, const Backend& backend);
  void GetInfo(UnaryCall& call) const;

 private:
  std::string response_;
};

// EchoService: the message back, unread.
void Echo(UnaryCall& call);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_INFO_SERVICE_H_
