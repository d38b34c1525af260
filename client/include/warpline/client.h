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
// now, finite and above zero. Errors have gRPC's codes; error.h reads their details. Operands stay the
// caller's and must not change until the call is over (see ConstArray, and Region for what lies in shared
// memory). A call that has ended returns once its operands are no longer being sent: if the server takes no
// data, after 30 seconds over TCP, and over a unix socket when the server goes on or ends. Thread-safe.
class Client {
 public:
  // Connects at the first call. Target: "host:port", "unix:/path", or anything else gRPC resolves.
  Client(const std::string& target, const ClientOptions& options);
  // Waits for the calls in flight; their callbacks must neither start new ones nor destroy the client. Drops
  // the tensors that there are handles of, which takes a few seconds at the most; what calls in flight leave
  // on the server then ends with its lease. Regions are lost, but arrays keep their memory.
  ~Client();

  // Drops the tensors that there are handles of. Calls in flight, and all that come later, end with
  // CANCELLED.
  void Close();

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Each of these three runs a program of one step (OneStep).
  absl::StatusOr<Result> Transpose(const TransposeArgs& args, absl::Duration timeout,
                                   const CallOptions& options = {});
  absl::StatusOr<Result> Gemm(const GemmArgs& args, absl::Duration timeout, const CallOptions& options = {});
  absl::StatusOr<Result> Reduce(const ReduceArgs& args, absl::Duration timeout,
                                const CallOptions& options = {});
  absl::StatusOr<RunResult> Run(const RunArgs& args, absl::Duration timeout, const CallOptions& options = {});

  // Makes a resident tensor of an array of any size, which travels in pieces over one connection or several.
  // The tensor is dense: padding of rows stays here. If this fails, the tensor is dropped.
  absl::StatusOr<Tensor> Put(const ConstArray& array, absl::Duration timeout, const PutOptions& options = {});
  // The elements of a tensor. NotFound if there is no such tensor any more; InvalidArgument if its elements
  // have not all been put.
  absl::StatusOr<Array> Get(const Tensor& tensor, absl::Duration timeout, const GetOptions& options = {});
  absl::StatusOr<Array> Get(const std::string& id, absl::Duration timeout, const GetOptions& options = {});
  // Ends the lease of a tensor now; its memory is free once no request uses it. NotFound as above.
  absl::Status Drop(const std::string& id, absl::Duration timeout);
  // Begins the lease anew, with another length if one is given.
  absl::StatusOr<TensorInfo> Renew(const std::string& id, std::optional<absl::Duration> ttl,
                                   absl::Duration timeout);
  // A handle of the tensor with this id, which somebody else owns: it does not drop the tensor. This call
  // renews the lease once.
  absl::StatusOr<Tensor> Attach(const std::string& id, absl::Duration timeout,
                                const AttachOptions& options = {});
  // The caller's tensors, whoever made them, in the order of their ids. Renews no lease.
  absl::StatusOr<std::vector<TensorInfo>> ListTensors(absl::Duration timeout);

  // Memory that is shared with a server on the same host: see region.h. So many bytes are allocated, rounded
  // up to whole pages. FailedPrecondition if the target does not tell where the server's region socket is,
  // and ClientOptions::region_socket does not either; PermissionDenied if only other users may connect to
  // that socket; Unimplemented if the server shares no memory;
  // ResourceExhausted, with the figures, if that is more than its limits allow, or than there is.
  absl::StatusOr<Region> OpenRegion(std::size_t bytes, absl::Duration timeout);

  // Allocates a dense array, not initialised, which calls read and write in place: in shared memory, which
  // does not count against ClientOptions::pool_bytes. The memory is free again when the array has gone. With
  // SharedMemory::kExplicit it is ordinary memory. With kAuto it is ordinary memory if the server shares
  // none, or has none left. With kAlways those are errors: see kAlways.
  absl::StatusOr<Array> Empty(DType dtype, const Shape& shape, absl::Duration timeout);
  // Returns true if this memory lies in a region that the client shares with its server.
  bool Shares(const void* data, std::size_t bytes) const;
  // Returns the text of a warning that the user should see: why large arrays travel in messages (kAuto).
  // There is at most one for a client. Returns "" if there is none, or if it was returned before.
  std::string TakeWarning();

  absl::StatusOr<v1::GetInfoResponse> GetInfo(absl::Duration timeout);
  // grpc.health.v1 Check of one service, or of the whole server (""): whether it is SERVING.
  absl::StatusOr<bool> IsServing(const std::string& service, absl::Duration timeout);

  // Run without waiting, and with OneStep any of the operations. `done` runs on a thread of the client's, or
  // at once on the caller's if the request cannot be sent. The destinations must stay until then.
  void RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                std::function<void(absl::StatusOr<RunResult>)> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_H_
