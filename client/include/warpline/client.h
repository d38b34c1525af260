// The client of a warpline server: typed calls on arrays in the caller's memory.
//
//   warpline::client::Client client("127.0.0.1:50051", {});
//   auto result = client.Transpose({.x = {.dtype = DType::kF32, .shape = {3, 4}, .data = data}},
//                                 absl::Seconds(5));
//   auto chain = client.Run({.program = *ParseExpression("reduce(gemm(a, b), op=sum)"),  // program.h
//                            .inputs = {{"a", a}, {"b", b}}}, absl::Seconds(5));
#ifndef WARPLINE_CLIENT_H_
#define WARPLINE_CLIENT_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "warpline/options.h"
#include "warpline/region.h"
#include "warpline/requests.h"
#include "warpline/tensor.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// Calls the methods of the API, which warpline.proto describes. Every call has a deadline: `timeout` from
// now, finite and above zero. Errors have gRPC's codes; error.h reads their details. Operands belong to the
// caller and must not change until the call is over (see ConstArray, and Region for shared memory). A call
// that has ended returns only when its operands are no longer being sent. If the server accepts no data, that
// takes 30 seconds over TCP, and over a unix socket until the server continues or ends. Thread-safe.
class Client {
 public:
  // Connects at the first call. Target: "host:port", "unix:/path", or anything else gRPC resolves.
  Client(const std::string& target, const ClientOptions& options);
  // Waits for the calls in flight; their callbacks must neither start new calls nor destroy the client. Drops
  // the tensors that still have handles, which takes at most a few seconds. Tensors that calls in flight
  // leave on the server end with their lease. Regions are lost, but arrays keep their memory.
  ~Client();

  // Drops the tensors that still have handles. Calls in flight and all later calls end with CANCELLED.
  void Close();

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Each of these three functions runs a program with only one step (OneStep).
  absl::StatusOr<Result> Transpose(const TransposeArgs& args, absl::Duration timeout,
                                   const CallOptions& options = {});
  absl::StatusOr<Result> Gemm(const GemmArgs& args, absl::Duration timeout, const CallOptions& options = {});
  absl::StatusOr<Result> Reduce(const ReduceArgs& args, absl::Duration timeout,
                                const CallOptions& options = {});
  absl::StatusOr<RunResult> Run(const RunArgs& args, absl::Duration timeout, const CallOptions& options = {});

  // Makes a resident tensor from an array of any size, which travels in pieces over one or several
  // connections. The tensor is dense: padding of rows is not sent. If Put fails, the tensor is dropped.
  absl::StatusOr<Tensor> Put(const ConstArray& array, absl::Duration timeout, const PutOptions& options = {});
  // Returns the elements of a tensor. NotFound if the tensor no longer exists; InvalidArgument if some of its
  // elements have not been put.
  absl::StatusOr<Array> Get(const Tensor& tensor, absl::Duration timeout, const GetOptions& options = {});
  absl::StatusOr<Array> Get(const std::string& id, absl::Duration timeout, const GetOptions& options = {});
  // Ends the lease of a tensor now. Its memory is freed once no request uses it. NotFound as for Get.
  absl::Status Drop(const std::string& id, absl::Duration timeout);
  // Renews the lease, with another length if `ttl` is given.
  absl::StatusOr<TensorInfo> Renew(const std::string& id, std::optional<absl::Duration> ttl,
                                   absl::Duration timeout);
  // Returns a handle of a tensor that somebody else owns: the handle does not drop the tensor. This call
  // renews the lease once.
  absl::StatusOr<Tensor> Attach(const std::string& id, absl::Duration timeout,
                                const AttachOptions& options = {});
  // Lists the caller's tensors in the order of their ids, including those made by its other clients.
  // Renews no lease.
  absl::StatusOr<std::vector<TensorInfo>> ListTensors(absl::Duration timeout);

  // Opens memory that is shared with a server on the same host: see region.h. Allocates `bytes` bytes,
  // rounded up to whole pages. FailedPrecondition if neither the target nor ClientOptions::region_socket says
  // where the server's region socket is; PermissionDenied if only other users may connect to that socket;
  // Unimplemented if the server shares no memory; ResourceExhausted, with the figures, if the server's limits
  // do not allow that much, or there is not enough memory.
  absl::StatusOr<Region> OpenRegion(std::size_t bytes, absl::Duration timeout);

  // Allocates a dense array, not initialised, which calls read and write in place. It lies in shared memory,
  // which does not count against ClientOptions::pool_bytes. The memory is freed when the array is destroyed.
  // With SharedMemory::kExplicit it is ordinary memory. With kAuto it is ordinary memory if the server shares
  // none, or has none left. With kAlways those cases are errors: see kAlways.
  absl::StatusOr<Array> Empty(DType dtype, const Shape& shape, absl::Duration timeout);
  // Returns true if this memory lies in a region that the client shares with its server.
  bool Shares(const void* data, std::size_t bytes) const;
  // Returns the text of a warning that the user should see: why large arrays travel in messages (kAuto).
  // There is at most one for a client. Returns "" if there is none, or if it was returned before.
  std::string TakeWarning();

  absl::StatusOr<v1::GetInfoResponse> GetInfo(absl::Duration timeout);
  // Calls Check of grpc.health.v1 for one service, or for the whole server (""). Returns true if it is
  // SERVING.
  absl::StatusOr<bool> IsServing(const std::string& service, absl::Duration timeout);

  // Same as Run, but asynchronous. Use OneStep for the other operations. `done` runs on a thread of the
  // client, or at once on the caller's thread if the request cannot be sent. The destinations must stay valid
  // until then.
  void RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                std::function<void(absl::StatusOr<RunResult>)> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_H_
