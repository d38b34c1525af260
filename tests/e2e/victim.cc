// A client for tests that kill it: goes so far with the daemon, says so, and waits for its end.
//
//   victim SOCKET PHASE BACKEND
#include <unistd.h>

#include <cstdio>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/e2e/announced.h"
#include "tests/e2e/regions.h"
#include "tests/e2e/requests.h"
#include "tests/e2e/tensors.h"
#include "warpline/client.h"

namespace warpline {
namespace {

constexpr double kTtl = 1;

class Victim {
 public:
  Victim(const std::string& path, bool cpu) : path_(path), cpu_(cpu) {}

  void GoTo(const std::string& phase) {
    const std::map<std::string, void (Victim::*)()> phases = {{"ticket", &Victim::Ticket},
                                                              {"connection", &Victim::Connection},
                                                              {"handover", &Victim::Handover},
                                                              {"region", &Victim::Region},
                                                              {"jobs", &Victim::Jobs},
                                                              {"uploads", &Victim::Uploads},
                                                              {"unread", &Victim::UnreadAnswer},
                                                              {"withdrawal", &Victim::Withdrawal},
                                                              {"tensor", &Victim::Tensor},
                                                              {"put", &Victim::HalfPut},
                                                              {"get", &Victim::HalfGet},
                                                              {"announced", &Victim::Announce},
                                                              {"sending", &Victim::HalfUpload},
                                                              {"computed", &Victim::UnfetchedResult},
                                                              {"all", &Victim::EverythingForEver}};
    (this->*phases.at(phase))();
    SayThere();
    while (true) pause();
  }

 private:
  static void SayThere() {
    std::puts("there");
    std::fflush(stdout);
  }
  std::string region_path() const { return path_ + ".regions"; }
  std::string NewTicket() { return OpenTicket(channel_, kMiB).response.ticket(); }

  void Ticket() { NewTicket(); }
  void Connection() { sockets_.emplace_back(region_path()); }
  void Handover() {
    Connection();
    sockets_.back().HandOver(NewTicket(), {Memfd(kMiB).get()});
  }
  void Region() { region_ = std::make_unique<SharedRegion>(channel_, region_path(), 64 * kMiB); }
  // More than there are lanes, so that some wait and some run.
  void Jobs() {
    Region();
    for (int i = 0; i < 12; ++i) SendProduct(i + 1);
  }
  void SendProduct(int number) {
    const std::int64_t side = cpu_ ? 400 : 2048;
    v1::GemmRequest request;
    for (v1::Tensor* tensor : {request.mutable_a(), request.mutable_b()}) {
      region_->Fill(tensor, v1::DATA_TYPE_F32, {side, side}, 0, number);
    }
    // On the CPU each has a place of its own, as a sanitizer would see several threads write the same bytes.
    const std::int64_t sink = (16 + (cpu_ ? number : 0)) * kMiB;
    region_->Name(request.mutable_options()->add_sinks()->mutable_region(), sink, number);
    request.set_variant(cpu_ ? "reference" : "naive");
    Send("/warpline.v1.KernelService/Gemm", request.SerializeAsString());
  }
  void Withdrawal() {
    Region();
    SendProduct(1);
    calls_.clear();  // cancels it
    region_->socket().Withdraw(1);
  }
  // Begun, and neither ended nor going on.
  void Uploads() {
    for (int i = 0; i < 4; ++i) {
      calls_.push_back(std::make_unique<StreamCall>(channel_, kTransposeMethod));
    }
  }
  void UnreadAnswer() {
    const v1::TransposeRequest request = IotaTranspose(2048, 2048);
    for (int i = 0; i < 4; ++i) Send(kTransposeMethod, request.SerializeAsString());
  }
  void Send(const std::string& method, const std::string& message) {
    calls_.push_back(std::make_unique<StreamCall>(channel_, method));
    calls_.back()->WriteLast(message);
  }

  std::string Tensor(std::int64_t bytes) {
    return tensors_.Create(v1::DATA_TYPE_U8, {bytes}, kTtl).response.tensor().resident().id();
  }
  void Tensor() { Tensor(kMiB); }
  void HalfPut() {
    v1::PutRequest request;
    request.set_id(Tensor(64 * kMiB));
    request.set_data(std::string(kMiB, 'p'));
    calls_.push_back(std::make_unique<StreamCall>(channel_, "/warpline.v1.TensorService/Put"));
    for (std::size_t i = 0; i < 8; ++i) {
      request.set_offset(static_cast<std::int64_t>(i * kMiB));
      calls_.back()->Write(request.SerializeAsString());
    }
  }
  void HalfGet() {
    v1::GetRequest request;
    request.set_id(Tensor(64 * kMiB));
    tensors_.Put(request.id(), 0, std::string(64 * kMiB, 'g'));
    Send("/warpline.v1.TensorService/Get", request.SerializeAsString());
    calls_.back()->Read();
  }

  std::string Announce(std::size_t bytes) {
    announced_ = std::make_unique<Announced>(
        channel_, StreamedTranspose(static_cast<std::int64_t>(bytes / 1024), 1024));
    return announced_->Accepted()->ids(0);
  }
  void Announce() { Announce(8 * kMiB); }
  void HalfUpload() { tensors_.Put(Announce(8 * kMiB), 0, std::string(4 * kMiB, 'u')); }
  void UnfetchedResult() {
    tensors_.Put(Announce(8 * kMiB), 0, std::string(8 * kMiB, 'u'));
    announced_->Finish();
  }

  // Uses the library as programs do, over and over again.
  void EverythingForEver() {
    SayThere();
    const std::vector<float> values(512 * 512, 1.5F);
    const client::ConstArray x{.dtype = DType::kF32, .shape = {512, 512}, .data = values.data()};
    constexpr absl::Duration kTimeout = absl::Seconds(30);
    while (true) {
      // Transposes travel in ranges, unless they use the region.
      client::Client client("unix:" + path_, {.stream_from_bytes = kMiB});
      auto region = client.OpenRegion(8 * kMiB, kTimeout);
      if (!region.ok()) continue;  // the one before is on its way out
      for (int i = 0; i < 3; ++i) {
        static_cast<void>(client.Transpose({.x = x}, kTimeout));
        static_cast<void>(client.Transpose({.x = x}, kTimeout, {.destination = {.region = &*region}}));
        const auto tensor = client.Put(x, kTimeout, {.ttl = absl::Seconds(kTtl)});
        if (!tensor.ok()) continue;
        static_cast<void>(client.Gemm({.a = *tensor, .b = *tensor}, kTimeout,
                                      {.destination = {.keep = absl::Seconds(kTtl)}}));
        static_cast<void>(client.Get(*tensor, kTimeout));
      }
    }
  }

  const std::string path_;
  const bool cpu_;
  const std::shared_ptr<grpc::Channel> channel_ =
      grpc::CreateChannel("unix:" + path_, grpc::InsecureChannelCredentials());
  Tensors tensors_{channel_};
  std::unique_ptr<SharedRegion> region_;
  std::deque<RegionSocket> sockets_;
  std::unique_ptr<Announced> announced_;
  std::vector<std::unique_ptr<StreamCall>> calls_;
};

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: victim SOCKET PHASE BACKEND\n", stderr);
    return 2;
  }
  warpline::Victim(argv[1], std::string(argv[3]) == "cpu").GoTo(argv[2]);
}
