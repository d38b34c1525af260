#include "server/rpc/refusal.h"

#include <utility>

namespace warpline {
namespace {

// Deletes itself when both tags have been returned.
class Refusal {
 public:
  explicit Refusal(std::unique_ptr<IncomingCall> incoming) : incoming_(std::move(incoming)) {
    incoming_->OnDone(&done_tag_);
  }
  void Begin(const grpc::Status& status) { incoming_->stream().Finish(status, &sent_tag_); }

 private:
  struct DoneTag final : CompletionTag {
    explicit DoneTag(Refusal& refusal) : refusal(refusal) {}
    void Proceed(bool) override { refusal.Unref(); }
    Refusal& refusal;
  };
  struct SentTag final : CompletionTag {
    explicit SentTag(Refusal& refusal) : refusal(refusal) {}
    void Proceed(bool ok) override {
      if (ok) refusal.incoming_->SetAnswered();
      refusal.Unref();
    }
    Refusal& refusal;
  };
  // Both tags are returned to the same thread.
  void Unref() {
    if (--references_ == 0) delete this;
  }

  const std::unique_ptr<IncomingCall> incoming_;
  DoneTag done_tag_{*this};
  SentTag sent_tag_{*this};
  int references_ = 2;
};

}  // namespace

void Refuse(std::unique_ptr<IncomingCall> incoming, const grpc::Status& status,
            const std::string& request_id) {
  incoming->LogEnd(request_id, {.code = status.error_code(), .reason = status.error_message()});
  (new Refusal(std::move(incoming)))->Begin(status);
}

}  // namespace warpline
