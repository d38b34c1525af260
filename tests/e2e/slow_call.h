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
  explicit SlowCall(const Daemon& daemon)
      : channel_(daemon.Channel()), status_(std::async(std::launch::async, [this, &daemon] {
          SetTimeout(context_, absl::Seconds(120));
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
