// The client of a warpline server: typed calls on arrays in the caller's memory.
//
//   warpline::client::Client client("127.0.0.1:50051", {});
//   auto result = client.Transpose({.x = {.dtype = DType::kF32, .shape = {3, 4}, .data = data}},
//                                 absl::Seconds(5));
//   auto chain = client.Run({.program = *ParseExpression("reduce(gemm(a, b), op=sum)"),  // program.h
//                            .inputs = {{"a", a}, {"b", b}}}, absl::Seconds(5));
#ifndef WARPLINE_CLIENT_H_
#define WARPLINE_CLIENT_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "warpline/options.h"
#include "warpline/requests.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

// Calls the methods of the API, which warpline.proto describes. Every call has a deadline: `timeout` from
// now, finite and above zero. Errors have gRPC's codes; error.h reads their details. Operands stay the
// caller's and must not change until the call is over (see ConstArray). Thread-safe.
class Client {
 public:
  // Connects at the first call. Target: "host:port", "unix:/path", or anything else gRPC resolves.
  Client(const std::string& target, const ClientOptions& options);
  // Waits for the calls in flight; their callbacks must not start new ones.
  ~Client();

  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  absl::StatusOr<Result> Transpose(const TransposeArgs& args, absl::Duration timeout,
                                   const CallOptions& options = {});
  absl::StatusOr<Result> Gemm(const GemmArgs& args, absl::Duration timeout, const CallOptions& options = {});
  absl::StatusOr<Result> Reduce(const ReduceArgs& args, absl::Duration timeout,
                                const CallOptions& options = {});
  absl::StatusOr<RunResult> Run(const RunArgs& args, absl::Duration timeout, const CallOptions& options = {});
  absl::StatusOr<v1::GetInfoResponse> GetInfo(absl::Duration timeout);
  // grpc.health.v1 Check of one service, or of the whole server (""): whether it is SERVING.
  absl::StatusOr<bool> IsServing(const std::string& service, absl::Duration timeout);

  // Any of the operations, without waiting and without retries. `done` runs on a thread of the client's, or
  // at once on the caller's if the request cannot be sent.
  void CallAsync(const OperationArgs& args, absl::Duration timeout, const CallOptions& options,
                 std::function<void(absl::StatusOr<Result>)> done);
  void RunAsync(const RunArgs& args, absl::Duration timeout, const CallOptions& options,
                std::function<void(absl::StatusOr<RunResult>)> done);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_H_
