// A call whose request has uploads, as a client with generated code makes it.
#ifndef WARPLINE_TESTS_E2E_ANNOUNCED_H_
#define WARPLINE_TESTS_E2E_ANNOUNCED_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/e2e/requests.h"
#include "tests/e2e/tensors.h"
#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline {

// The transpose of an upload, whose result is fetched.
inline v1::TransposeRequest StreamedTranspose(std::int64_t rows, std::int64_t cols) {
  v1::TransposeRequest request;
  request.mutable_x()->set_data_type(v1::DATA_TYPE_U8);
  request.mutable_x()->add_shape(rows);
  request.mutable_x()->add_shape(cols);
  request.mutable_x()->mutable_upload();
  request.mutable_options()->add_sinks()->mutable_stream();
  return request;
}

// The transpose of Pattern(rows * cols).
inline std::string TransposedPattern(std::size_t rows, std::size_t cols) {
  const std::string x = Pattern(rows * cols);
  std::string y(x.size(), '\0');
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < cols; ++j) y[j * rows + i] = x[i * cols + j];
  }
  return y;
}

using KernelStub = v1::KernelService::Stub;
inline auto Start(KernelStub& stub, grpc::ClientContext& context, const v1::TransposeRequest& request,
                  grpc::CompletionQueue& queue) {
  return stub.AsyncTranspose(&context, request, &queue);
}
inline auto Start(KernelStub& stub, grpc::ClientContext& context, const v1::GemmRequest& request,
                  grpc::CompletionQueue& queue) {
  return stub.AsyncGemm(&context, request, &queue);
}
inline auto Start(KernelStub& stub, grpc::ClientContext& context, const v1::RunRequest& request,
                  grpc::CompletionQueue& queue) {
  return stub.AsyncRun(&context, request, &queue);
}

template <typename Request, typename Response>
class AnnouncedCall {
 public:
  AnnouncedCall(const std::shared_ptr<grpc::Channel>& channel, const Request& request,
                absl::Duration timeout = absl::Seconds(120), const std::string& request_id = "",
                const std::string& token = "")
      : stub_(v1::KernelService::NewStub(channel)) {
    SetTimeout(context_, timeout);
    if (!request_id.empty()) context_.AddMetadata("x-request-id", request_id);
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    reader_ = Start(*stub_, context_, request, queue_);
  }
  ~AnnouncedCall() {
    if (!finished_) {
      context_.TryCancel();
      Finish();
    }
    queue_.Shutdown();
    Await();
  }
  AnnouncedCall(const AnnouncedCall&) = delete;
  AnnouncedCall& operator=(const AnnouncedCall&) = delete;

  // Nothing if the server has not accepted the request: Finish tells why.
  std::optional<v1::Uploads> Accepted() {
    reader_->ReadInitialMetadata(nullptr);
    Await();
    const auto& metadata = context_.GetServerInitialMetadata();
    const auto found = metadata.find("x-warpline-uploads-bin");
    if (found == metadata.end()) return std::nullopt;
    v1::Uploads uploads;
    if (!uploads.ParseFromArray(found->second.data(), static_cast<int>(found->second.size()))) return {};
    return uploads;
  }
  void Cancel() { context_.TryCancel(); }
  Answer<Response> Finish() {
    Answer<Response> answer;
    finished_ = true;
    reader_->Finish(&answer.response, &answer.status, nullptr);
    Await();
    return answer;
  }

 private:
  void Await() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
  }

  std::unique_ptr<v1::KernelService::Stub> stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<Response>> reader_;
  bool finished_ = false;
};
using Announced = AnnouncedCall<v1::TransposeRequest, v1::TransposeResponse>;

}  // namespace warpline

#endif  // WARPLINE_TESTS_E2E_ANNOUNCED_H_
