// TensorService as a client with generated code calls it.
#ifndef WARPLINE_TESTS_E2E_TENSORS_H_
#define WARPLINE_TESTS_E2E_TENSORS_H_

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"
#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline {

// The status of a call, beside its response.
template <typename Response>
struct Answer {
  grpc::Status status;
  Response response;
};

// One unary call of a generated stub.
template <typename Response, typename Stub, typename Method, typename Request>
Answer<Response> CallStub(Stub& stub, Method method, const Request& request) {
  grpc::ClientContext context;
  SetTimeout(context, absl::Seconds(60));
  Answer<Response> answer;
  answer.status = (stub.*method)(&context, request, &answer.response);
  return answer;
}

class Tensors {
 public:
  explicit Tensors(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::TensorService::NewStub(channel)) {}

  v1::TensorService::Stub& stub() { return *stub_; }

  Answer<v1::CreateResponse> Create(v1::DataType data_type, const std::vector<std::int64_t>& shape,
                                    double ttl = 0) {
    v1::CreateRequest request;
    request.set_data_type(data_type);
    request.mutable_shape()->Assign(shape.begin(), shape.end());
    request.set_ttl_seconds(ttl);
    return Call<v1::CreateResponse>(&v1::TensorService::Stub::Create, request);
  }
  Answer<v1::DropResponse> Drop(const std::string& id) {
    v1::DropRequest request;
    request.set_id(id);
    return Drop(request);
  }
  Answer<v1::DropResponse> Drop(const v1::DropRequest& request) {
    return Call<v1::DropResponse>(&v1::TensorService::Stub::Drop, request);
  }
  Answer<v1::RenewResponse> Renew(const std::string& id, double ttl) {
    v1::RenewRequest request;
    request.set_id(id);
    request.set_ttl_seconds(ttl);
    return Call<v1::RenewResponse>(&v1::TensorService::Stub::Renew, request);
  }
  Answer<v1::ListResponse> List(int page_size = 0, const std::string& page_token = "") {
    v1::ListRequest request;
    request.set_page_size(page_size);
    request.set_page_token(page_token);
    return Call<v1::ListResponse>(&v1::TensorService::Stub::List, request);
  }

  // Puts `data` at `offset` in messages of `chunk` bytes.
  Answer<v1::PutResponse> Put(const std::string& id, std::size_t offset, std::string_view data,
                              std::size_t chunk = 1 << 20) {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(120));
    Answer<v1::PutResponse> answer;
    const auto writer = stub_->Put(&context, &answer.response);
    std::size_t at = 0;
    do {
      v1::PutRequest request;
      if (at == 0) request.set_id(id);
      request.set_offset(static_cast<std::int64_t>(offset + at));
      request.set_data(std::string(data.substr(at, chunk)));
      at += request.data().size();
      if (!writer->Write(request)) break;
    } while (at < data.size());
    writer->WritesDone();
    answer.status = writer->Finish();
    return answer;
  }
  // These messages, as they are.
  Answer<v1::PutResponse> PutMessages(const std::vector<v1::PutRequest>& messages) {
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(60));
    Answer<v1::PutResponse> answer;
    const auto writer = stub_->Put(&context, &answer.response);
    for (const v1::PutRequest& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    answer.status = writer->Finish();
    return answer;
  }

  struct Got {
    grpc::Status status;
    v1::TensorInfo info;
    std::string data;
    bool in_order = true;
  };
  Got Get(const std::string& id, std::int64_t offset = 0, std::int64_t length = 0) {
    v1::GetRequest request;
    request.set_id(id);
    request.set_offset(offset);
    request.set_length(length);
    grpc::ClientContext context;
    SetTimeout(context, absl::Seconds(120));
    Got got;
    const auto reader = stub_->Get(&context, request);
    v1::GetResponse response;
    for (bool first = true; reader->Read(&response); first = false) {
      if (response.has_tensor()) got.info = response.tensor();
      got.in_order = got.in_order && response.has_tensor() == first &&
                     response.offset() == offset + static_cast<std::int64_t>(got.data.size());
      got.data += response.data();
    }
    got.status = reader->Finish();
    return got;
  }

  // A complete tensor with this content; its id.
  std::string Made(v1::DataType data_type, const std::vector<std::int64_t>& shape, std::string_view data,
                   double ttl = 0) {
    const auto created = Create(data_type, shape, ttl);
    EXPECT_TRUE(created.status.ok()) << created.status.error_message();
    const std::string id = created.response.tensor().resident().id();
    if (data.empty()) return id;
    const auto put = Put(id, 0, data);
    EXPECT_TRUE(put.status.ok()) << put.status.error_message();
    EXPECT_EQ(put.response.missing_bytes(), 0);
    return id;
  }

 private:
  template <typename Response, typename Method, typename Request>
  Answer<Response> Call(Method method, const Request& request) {
    return CallStub<Response>(*stub_, method, request);
  }
  std::unique_ptr<v1::TensorService::Stub> stub_;
};

// Bytes of which no chunk is like another.
inline std::string Pattern(std::size_t bytes, std::size_t first = 0) {
  std::string data(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) {
    const std::size_t at = first + i;
    data[i] = static_cast<char>(at * 131 + at / 251);
  }
  return data;
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_E2E_TENSORS_H_
