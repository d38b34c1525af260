// A TensorService in the test's process, which fails as it is told.
#ifndef WARPLINE_TESTS_CLIENT_SRC_FAKE_TENSORS_H_
#define WARPLINE_TESTS_CLIENT_SRC_FAKE_TENSORS_H_

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline::client {

class FakeTensors : public v1::TensorService::Service {
 public:
  struct Stored {
    v1::TensorInfo info;
    std::string bytes;
    std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  };
  // Asked at each message of a Put, and before each message of a Get, with where it begins; what it answers,
  // if it is no OK, ends the call.
  using Fault = std::function<grpc::Status(grpc::ServerContext&, std::int64_t offset)>;

  Fault put_fault, get_fault;
  // Put: the error of a range that has been written all the same.
  Fault late_fault;
  grpc::Status renew_status;
  double ttl_seconds = 600;
  bool takes_many = true;  // ids in one request
  std::atomic<int> refused_drops = 0;

  std::size_t count(const std::string& method) const {
    const std::lock_guard lock(mutex_);
    const auto calls = calls_.find(method);
    return calls == calls_.end() ? 0 : calls->second;
  }
  std::map<std::string, Stored> tensors() const {
    const std::lock_guard lock(mutex_);
    return tensors_;
  }

  grpc::Status Create(grpc::ServerContext*, const v1::CreateRequest* request,
                      v1::CreateResponse* response) override {
    const std::lock_guard lock(mutex_);
    ++calls_["Create"];
    v1::TensorInfo info;
    info.mutable_resident()->set_id("0badcafe-" + std::to_string(10'000'000 + calls_["Create"]));
    const double ttl = request->ttl_seconds();
    info.mutable_resident()->set_ttl_seconds(ttl == 0 ? ttl_seconds : ttl);
    info.set_data_type(request->data_type());
    std::int64_t bytes = 4;  // of an element: tests use 4-byte types
    for (std::int64_t size : request->shape()) {
      info.add_shape(size);
      bytes *= size;
    }
    info.set_device(request->device());
    info.set_size_bytes(bytes);
    info.set_missing_bytes(bytes);
    *response->mutable_tensor() = info;
    tensors_[info.resident().id()] = {info, std::string(static_cast<std::size_t>(bytes), '\0'), {}};
    return grpc::Status::OK;
  }

  grpc::Status Put(grpc::ServerContext* context, grpc::ServerReader<v1::PutRequest>* reader,
                   v1::PutResponse* response) override {
    {
      const std::lock_guard lock(mutex_);
      ++calls_["Put"];
    }
    std::string id, bytes;
    std::int64_t begin = 0;
    for (v1::PutRequest message; reader->Read(&message);) {
      if (bytes.empty()) begin = message.offset();
      if (!message.id().empty()) id = message.id();
      if (put_fault) {
        if (grpc::Status status = put_fault(*context, message.offset()); !status.ok()) return status;
      }
      bytes += message.data();
    }
    if (context->IsCancelled()) return grpc::Status(grpc::StatusCode::CANCELLED, "cancelled");
    const std::lock_guard lock(mutex_);
    const auto found = tensors_.find(id);
    if (found == tensors_.end()) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such tensor");
    Stored& stored = found->second;
    const std::int64_t end = begin + static_cast<std::int64_t>(bytes.size());
    if (end > stored.info.size_bytes()) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "beyond");
    for (const auto& [from, to] : stored.ranges) {
      if (from < end && begin < to) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "there already");
    }
    stored.bytes.replace(static_cast<std::size_t>(begin), bytes.size(), bytes);
    stored.ranges.emplace_back(begin, end);
    stored.info.set_missing_bytes(stored.info.missing_bytes() - (end - begin));
    response->set_missing_bytes(stored.info.missing_bytes());
    return late_fault ? late_fault(*context, begin) : grpc::Status::OK;
  }

  grpc::Status Get(grpc::ServerContext* context, const v1::GetRequest* request,
                   grpc::ServerWriter<v1::GetResponse>* writer) override {
    constexpr std::int64_t kChunk = 1 << 20;
    v1::GetResponse message;
    std::string bytes;
    {
      const std::lock_guard lock(mutex_);
      ++calls_["Get"];
      const auto found = tensors_.find(request->id());
      if (found == tensors_.end()) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such tensor");
      *message.mutable_tensor() = found->second.info;
      bytes = found->second.bytes;
    }
    const auto size = static_cast<std::int64_t>(bytes.size());
    const std::int64_t end = request->length() == 0 ? size : request->offset() + request->length();
    std::int64_t at = request->offset();
    do {
      if (get_fault) {
        if (grpc::Status status = get_fault(*context, at); !status.ok()) return status;
      }
      message.set_offset(at);
      message.set_data(
          bytes.substr(static_cast<std::size_t>(at), static_cast<std::size_t>(std::min(kChunk, end - at))));
      writer->Write(message);
      message.clear_tensor();
      at += kChunk;
    } while (at < end);
    return grpc::Status::OK;
  }

  grpc::Status Drop(grpc::ServerContext*, const v1::DropRequest* request, v1::DropResponse*) override {
    const std::lock_guard lock(mutex_);
    ++calls_["Drop"];
    if (refused_drops-- > 0) return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "too many");
    if (takes_many && request->ids_size() > 0) {
      for (const std::string& id : request->ids()) tensors_.erase(id);
      return grpc::Status::OK;
    }
    if (request->id().empty()) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "id: missing");
    if (tensors_.erase(request->id()) > 0) return grpc::Status::OK;
    return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such tensor");
  }

  grpc::Status Renew(grpc::ServerContext*, const v1::RenewRequest* request,
                     v1::RenewResponse* response) override {
    const std::lock_guard lock(mutex_);
    ++calls_["Renew"];
    if (!renew_status.ok()) return renew_status;
    const v1::RenewRequest none;
    for (const std::string& id : takes_many ? request->ids() : none.ids()) {
      const auto named = tensors_.find(id);
      response->add_ttl_seconds(named == tensors_.end() ? 0 : named->second.info.resident().ttl_seconds());
    }
    if (response->ttl_seconds_size() > 0) return grpc::Status::OK;
    if (request->id().empty()) return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "id: missing");
    const auto found = tensors_.find(request->id());
    if (found == tensors_.end()) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such tensor");
    if (request->ttl_seconds() != 0) {
      found->second.info.mutable_resident()->set_ttl_seconds(request->ttl_seconds());
    }
    *response->mutable_tensor() = found->second.info;
    return grpc::Status::OK;
  }

  // One tensor a page.
  grpc::Status List(grpc::ServerContext*, const v1::ListRequest* request,
                    v1::ListResponse* response) override {
    const std::lock_guard lock(mutex_);
    ++calls_["List"];
    const auto next = tensors_.upper_bound(request->page_token());
    if (next == tensors_.end()) return grpc::Status::OK;
    *response->add_tensors() = next->second.info;
    if (std::next(next) != tensors_.end()) response->set_next_page_token(next->first);
    return grpc::Status::OK;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, std::size_t> calls_;
  std::map<std::string, Stored> tensors_;
};

}  // namespace warpline::client

#endif  // WARPLINE_TESTS_CLIENT_SRC_FAKE_TENSORS_H_
