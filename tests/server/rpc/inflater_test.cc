#include "server/rpc/inflater.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <chrono>
#include <future>
#include <string>
#include <vector>

#include "server/observe/metrics.h"
#include "server/rpc/completion_tag.h"
#include "server/rpc/slices.h"

namespace warpline {
namespace {

constexpr std::size_t kLimit = 1 << 20;

std::vector<grpc::Slice> Compressed(const std::string& text) {
  uLongf size = compressBound(text.size());
  std::string bytes(size, '\0');
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(bytes.data()), &size,
                     reinterpret_cast<const Bytef*>(text.data()), text.size()),
            Z_OK);
  return {grpc::Slice(bytes.data(), size)};
}

class InflaterTest : public ::testing::Test {
 protected:
  ~InflaterTest() override {
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  // Returns whether an event is there, without waiting.
  bool HasEvent() {
    void* tag = nullptr;
    bool ok = false;
    const auto status = queue_.AsyncNext(&tag, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
    if (status == grpc::CompletionQueue::GOT_EVENT) static_cast<CompletionTag*>(tag)->Proceed(ok);
    return status == grpc::CompletionQueue::GOT_EVENT;
  }
  void ProceedOnce() {
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue_.Next(&tag, &ok));
    static_cast<CompletionTag*>(tag)->Proceed(ok);
  }

  Metrics metrics_;
  Admission admission_{{.max_jobs = 2, .max_bytes = 2 * kLimit}, metrics_};
  grpc::CompletionQueue queue_;
};

// While the workers are busy nothing is inflated, so it is not the caller or the polling thread that does it.
TEST_F(InflaterTest, OnlyAWorkerInflates) {
  FairWorkers workers(1);
  std::promise<void> release;
  workers.Post({}, [&release] { release.get_future().wait(); });
  Inflater inflater(admission_, workers);
  std::string result;
  ASSERT_TRUE(inflater
                  .Start(MessageSlices(Compressed(std::string(1000, 'x'))), kLimit, CallerWith(kAnonymous),
                         queue_,
                         [&result](absl::StatusOr<Inflater::Inflated> inflated) {
                           ASSERT_TRUE(inflated.ok()) << inflated.status();
                           result = ToString(inflated->slices.slices());
                         })
                  .ok());
  EXPECT_FALSE(HasEvent());
  EXPECT_EQ(result, "");
  release.set_value();
  EXPECT_EQ(result, "") << "the result comes with an event of the queue";
  ProceedOnce();
  EXPECT_EQ(result, std::string(1000, 'x'));
}

TEST_F(InflaterTest, AsksAdmissionForTheMostThatTheMessageCanBe) {
  FairWorkers workers(1);
  Inflater inflater(admission_, workers);
  const std::vector<grpc::Slice> small = Compressed(std::string(1000, 'x'));
  std::vector<Ticket> tickets;
  const auto keep = [&tickets](absl::StatusOr<Inflater::Inflated> inflated) {
    ASSERT_TRUE(inflated.ok()) << inflated.status();
    tickets.push_back(std::move(inflated->ticket));
  };
  ASSERT_TRUE(inflater.Start(MessageSlices(small), kLimit, CallerWith(kAnonymous), queue_, keep).ok());
  EXPECT_EQ(metrics_.admission_bytes_used.Value(), 1032.0 * static_cast<double>(small[0].size()));
  std::string noise;
  for (unsigned i = 0; i < 20000; ++i) noise += static_cast<char>(i * 2654435761u >> 24);
  ASSERT_TRUE(
      inflater.Start(MessageSlices(Compressed(noise)), kLimit, CallerWith(kAnonymous), queue_, keep).ok());
  EXPECT_EQ(metrics_.admission_bytes_used.Value(),
            1032.0 * static_cast<double>(small[0].size()) + static_cast<double>(kLimit));
  EXPECT_TRUE(absl::IsResourceExhausted(
      inflater.Start(MessageSlices(small), kLimit, CallerWith(kAnonymous), queue_, keep)));
  ProceedOnce();
  ProceedOnce();
  tickets.clear();
  EXPECT_EQ(metrics_.admission_bytes_used.Value(), 0);
}

TEST_F(InflaterTest, ABrokenMessageGivesItsTicketBack) {
  FairWorkers workers(1);
  Inflater inflater(admission_, workers);
  absl::Status status;
  ASSERT_TRUE(inflater
                  .Start(MessageSlices({grpc::Slice("not deflate")}), kLimit, CallerWith(kAnonymous), queue_,
                         [&status](const absl::StatusOr<Inflater::Inflated>& inflated) {
                           status = inflated.status();
                         })
                  .ok());
  ProceedOnce();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(metrics_.admission_bytes_used.Value(), 0);
}

}  // namespace
}  // namespace warpline
