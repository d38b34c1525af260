// grpc.reflection.v1alpha, on the server's own completion queues (see health_service.h for why).
#ifndef WARPLINE_SERVER_RPC_REFLECTION_SERVICE_H_
#define WARPLINE_SERVER_RPC_REFLECTION_SERVICE_H_

#include <memory>
#include <string>
#include <vector>

#include "server/rpc/message_stream.h"

namespace warpline {

// Tells generic tools which services exist, and describes every type that is linked into the program.
// Immutable, so any thread may use it. It outlives the calls.
class ReflectionService {
 public:
  static constexpr char kName[] = "grpc.reflection.v1alpha.ServerReflection";

  explicit ReflectionService(std::vector<std::string> services) : services_(std::move(services)) {}

  // Answers each request of a stream, and ends with OK after the last one.
  std::unique_ptr<MessageStream::Handler> NewStream() const;

  // Returns the serialized ServerReflectionResponse for a serialized ServerReflectionRequest; empty if the
  // request is not valid.
  std::string Answer(const std::string& request) const;

 private:
  const std::vector<std::string> services_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_REFLECTION_SERVICE_H_
