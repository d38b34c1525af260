// KernelService: one ProgramCall for each call.
#ifndef WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_
#define WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_

#include <vector>

#include "server/rpc/call_context.h"
#include "server/rpc/codec/codec.h"
#include "server/rpc/program_call.h"

namespace warpline {

// Thread-safe; never blocks. Its arguments outlive it, and it outlives the calls.
class KernelService {
 public:
  KernelService(const Limits& limits, const CallEngine& engine, Metrics& metrics)
      : context_(limits, engine, metrics), codecs_(KernelCodecs()) {}

  const std::vector<Codec>& codecs() const { return codecs_; }
  // The most seconds that a request may take on a device, by its estimate; 0: no limit.
  void SetMaxDeviceSeconds(double seconds) { context_.compiler.SetMaxDeviceSeconds(seconds); }
  // Answers a call of the codec's method. A request with a known plan continues at once. Other requests are
  // compiled by a worker, so that other calls are received meanwhile, however long the checks take.
  void Handle(UnaryCall& call, const Codec& codec) { ProgramCall::Start(context_, call, codec); }

 private:
  CallContext context_;
  const std::vector<Codec> codecs_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_KERNEL_SERVICE_H_
