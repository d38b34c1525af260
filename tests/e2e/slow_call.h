// A call that lasts.
#ifndef WARPLINE_TESTS_E2E_SLOW_CALL_H_
#define WARPLINE_TESTS_E2E_SLOW_CALL_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <future>
#include <memory>

#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"

namespace warpline {

// A call that keeps a lane busy for about a second.
class SlowCall {
 public:
  explicit SlowCall(const Daemon& daemon, absl::Duration timeout = absl::Seconds(120))
      : channel_(daemon.Channel()), status_(std::async(std::launch::async, [this, &daemon, timeout] {
          // The deadline is to pass in the server, not while the client connects.
          channel_->WaitForConnected(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
          SetTimeout(context_, timeout);
          auto stub = v1::KernelService::NewStub(channel_);
          if (daemon.backend() == "cuda") {
            v1::ReduceResponse response;
            return stub->Reduce(&context_, SlowReduce(), &response);
          }
          v1::GemmResponse response;
          return stub->Gemm(&context_, SlowGemm(), &response);
        })) {}
  void Cancel() { context_.TryCancel(); }
  bool Ended() const { return status_.wait_for(std::chrono::seconds(0)) == std::future_status::ready; }
  grpc::Status Status() { return status_.get(); }

 private:
  std::shared_ptr<grpc::Channel> channel_;
  grpc::ClientContext context_;
  std::future<grpc::Status> status_;
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_E2E_SLOW_CALL_H_
