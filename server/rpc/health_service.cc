#include "server/rpc/health_service.h"

#include "absl/strings/str_cat.h"
#include "grpc/health/v1/health.pb.h"
#include "server/rpc/slices.h"
#include "server/rpc/unary_call.h"

namespace warpline {
namespace {

namespace health = grpc::health::v1;

absl::Status Malformed() {
  return absl::InvalidArgumentError("the message is not a valid grpc.health.v1.HealthCheckRequest");
}

}  // namespace

class HealthService::Watch final : public MessageStream::Handler {
 public:
  explicit Watch(HealthService& service) : service_(service) {}

  void OnMessage(MessageStream& stream, MessageSlices message) override {
    if (asked_) return stream.Finish(absl::InvalidArgumentError("a second message; expected one"));
    asked_ = true;
    health::HealthCheckRequest request;
    if (!request.ParseFromString(ToString(message.slices()))) return stream.Finish(Malformed());
    service_.AddWatcher(stream, request.service());
  }
  void OnLastMessage(MessageStream& stream) override {
    if (!asked_) stream.Finish(absl::InvalidArgumentError("the call ended without a message"));
  }
  void OnEnd(MessageStream& stream) override { service_.RemoveWatcher(stream); }

 private:
  HealthService& service_;
  bool asked_ = false;
};

HealthService::HealthService(const std::vector<std::string>& services)
    : services_(services.begin(), services.end()) {}

std::string HealthService::Response(bool known) const {
  health::HealthCheckResponse response;
  response.set_status(!known     ? health::HealthCheckResponse::SERVICE_UNKNOWN
                      : serving_ ? health::HealthCheckResponse::SERVING
                                 : health::HealthCheckResponse::NOT_SERVING);
  return response.SerializeAsString();
}

void HealthService::SetServing(bool serving) {
  MutexLock lock(&mutex_);
  if (serving_ == serving) return;
  serving_ = serving;
  for (MessageStream* stream : watchers_) stream->Send(ToByteBuffer(Response(true)));
}

void HealthService::Check(UnaryCall& call) {
  health::HealthCheckRequest request;
  if (!request.ParseFromString(ToString(call.TakeRequest().slices()))) return call.RespondError(Malformed());
  if (!request.service().empty() && !services_.contains(request.service())) {
    return call.RespondError(absl::NotFoundError(absl::StrCat("unknown service ", request.service())));
  }
  std::string response;
  {
    MutexLock lock(&mutex_);
    response = Response(true);
  }
  call.Respond(ToByteBuffer(response));
}

void HealthService::List(UnaryCall& call) {
  health::HealthListResponse list;
  {
    MutexLock lock(&mutex_);
    health::HealthCheckResponse response;
    static_cast<void>(response.ParseFromString(Response(true)));
    (*list.mutable_statuses())[""] = response;
    for (const std::string& service : services_) (*list.mutable_statuses())[service] = response;
  }
  call.Respond(ToByteBuffer(list.SerializeAsString()));
}

std::unique_ptr<MessageStream::Handler> HealthService::NewWatch() { return std::make_unique<Watch>(*this); }

void HealthService::AddWatcher(MessageStream& stream, const std::string& service) {
  const bool known = service.empty() || services_.contains(service);
  MutexLock lock(&mutex_);
  stream.Send(ToByteBuffer(Response(known)));
  if (known) watchers_.insert(&stream);
}

void HealthService::RemoveWatcher(MessageStream& stream) {
  MutexLock lock(&mutex_);
  watchers_.erase(&stream);
}

}  // namespace warpline
