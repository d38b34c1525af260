// A server with regions in the test's process: its kernels copy, and its region socket does as it is told.
#ifndef WARPLINE_TESTS_CLIENT_SRC_FAKE_REGIONS_H_
#define WARPLINE_TESTS_CLIENT_SRC_FAKE_REGIONS_H_

#include <grpcpp/grpcpp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline::client {

// Returns the first operand, wherever that lies, to wherever it is to go. `variant` says what else to do:
// "fail" fails, "slow" waits until the call is cancelled, and "fail once" fails the first time.
class FakeRegions : public v1::KernelService::Service,
                    public v1::RegionService::Service,
                    public v1::InfoService::Service {
 public:
  // Listens at `path`, and with the region socket beside it.
  explicit FakeRegions(const std::string& path) : socket_path_(path + ".regions") {
    ::unlink(socket_path_.c_str());
    listener_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, socket_path_.data(), socket_path_.size());
    if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) std::abort();
    if (::listen(listener_, 16) != 0) std::abort();
    thread_ = std::thread([this] { Serve(); });
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
    builder.RegisterService(static_cast<v1::KernelService::Service*>(this));
    builder.RegisterService(static_cast<v1::RegionService::Service*>(this));
    builder.RegisterService(static_cast<v1::InfoService::Service*>(this));
    server_ = builder.BuildAndStart();
  }
  ~FakeRegions() override {
    server_->Shutdown(std::chrono::system_clock::now());
    stopped_ = true;
    thread_.join();
    ::close(listener_);
    ::unlink(socket_path_.c_str());
  }

  // The behaviour of this server. Set it only while nothing is going on.
  grpc::Status open_status;
  std::optional<v1::RegionError> handover_error;
  // Bytes of all regions: those that GetInfo tells, and those that there really are. Regions count until they
  // are closed.
  std::atomic<std::int64_t> max_region_bytes = std::int64_t{1} << 40, quota = std::int64_t{1} << 40;
  std::function<void()> on_run;  // runs first
  double ticket_ttl_seconds = 60;
  // Withdrawals wait until ConfirmAll.
  std::atomic<bool> holds_withdrawals = false;

  void ConfirmAll() {
    const std::lock_guard lock(mutex_);
    holds_withdrawals = false;
    for (const auto& [fd, call] : held_) Confirm(fd, call);
    held_.clear();
  }
  // Ends the connections of all regions.
  void CloseRegions() {
    const std::lock_guard lock(mutex_);
    for (const auto& [fd, region] : regions_) ::shutdown(fd, SHUT_RDWR);
  }
  std::set<std::int64_t> withdrawn() const {
    const std::lock_guard lock(mutex_);
    return withdrawn_;
  }
  // Waits until so many withdrawals have come.
  void AwaitWithdrawals(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return withdrawn_.size() >= count; });
  }
  void AwaitRegions(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return regions_.size() == count; });
  }
  int opened() const { return opened_; }
  int asked() const { return asked_; }  // for a region, with or without success
  int info_calls() const { return info_calls_; }
  std::vector<std::int64_t> sizes() const {  // of all regions ever, in order
    const std::lock_guard lock(mutex_);
    return sizes_;
  }
  std::int64_t bytes() const {  // of the regions that are open
    const std::lock_guard lock(mutex_);
    return Bytes();
  }
  int sinks() const { return sinks_; }        // results that were written into regions
  std::vector<std::string> sources() const {  // of the requests' tensors, in order
    const std::lock_guard lock(mutex_);
    return sources_;
  }
  std::set<std::int64_t> calls() const {  // numbers that requests had
    const std::lock_guard lock(mutex_);
    return calls_;
  }

  grpc::Status GetInfo(grpc::ServerContext*, const v1::GetInfoRequest*,
                       v1::GetInfoResponse* response) override {
    ++info_calls_;
    response->mutable_limits()->set_max_region_bytes(max_region_bytes);
    return grpc::Status::OK;
  }

  grpc::Status Open(grpc::ServerContext*, const v1::OpenRequest* request,
                    v1::OpenResponse* response) override {
    ++asked_;
    if (!open_status.ok()) return open_status;
    const std::lock_guard lock(mutex_);
    if (Bytes() + request->size_bytes() > quota) {
      return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                          std::to_string(request->size_bytes()) + " bytes are not to be had");
    }
    sizes_.push_back(request->size_bytes());
    response->set_ticket("ticket " + std::to_string(++opened_));
    response->set_ttl_seconds(ticket_ttl_seconds);
    return grpc::Status::OK;
  }

  grpc::Status Run(grpc::ServerContext* context, const v1::RunRequest* request,
                   v1::RunResponse* response) override {
    if (on_run != nullptr) on_run();
    for (int i = 0; i < request->program().outputs_size(); ++i) {
      v1::NamedTensor& output = *response->add_outputs();
      output.set_name(request->program().outputs(i));
      const v1::Sink* sink = nullptr;
      for (const v1::Sink& each : request->options().sinks()) {
        if (each.output() == output.name()) sink = &each;
      }
      const grpc::Status status = Copy(*context, request->program().steps(0).variant(),
                                       request->inputs(i).tensor(), sink, *output.mutable_tensor());
      if (!status.ok()) return status;
    }
    return grpc::Status::OK;
  }

 private:
  struct Region {
    std::string id;
    char* data = nullptr;
    std::size_t bytes = 0;
  };

  grpc::Status Copy(grpc::ServerContext& context, const std::string& variant, const v1::Tensor& x,
                    const v1::Sink* sink, v1::Tensor& y) {
    {
      const std::lock_guard lock(mutex_);
      sources_.push_back(x.has_region() ? "region" : x.has_resident() ? "resident" : "inline");
      if (x.has_region()) calls_.insert(x.region().call());
      if (sink != nullptr && sink->has_region()) {
        calls_.insert(sink->region().call());
        ++sinks_;
      }
    }
    if (variant == "fail" || (variant == "fail once" && !failed_.exchange(true))) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "as it was told");
    }
    while (variant == "slow" && !context.IsCancelled()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    y.set_data_type(x.data_type());
    *y.mutable_shape() = x.shape();
    std::size_t bytes = 4;  // of an element: tests use 4-byte types
    for (std::int64_t size : x.shape()) bytes *= static_cast<std::size_t>(size);
    const std::lock_guard lock(mutex_);
    const char* from = x.inline_().data();
    if (x.has_region()) from = At(x.region(), bytes);
    if (from == nullptr) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such region");
    if (sink == nullptr) {
      y.set_inline_(from, bytes);
      return grpc::Status::OK;
    }
    char* const to = At(sink->region(), bytes);
    if (to == nullptr) return grpc::Status(grpc::StatusCode::NOT_FOUND, "no such region");
    std::memmove(to, from, bytes);
    *y.mutable_region() = sink->region();
    return grpc::Status::OK;
  }

  std::int64_t Bytes() const {
    std::int64_t bytes = 0;
    for (const auto& [fd, region] : regions_) bytes += static_cast<std::int64_t>(region.bytes);
    return bytes;
  }

  char* At(const v1::RegionSlice& slice, std::size_t bytes) const {
    for (const auto& [fd, region] : regions_) {
      const auto offset = static_cast<std::size_t>(slice.offset());
      if (region.id == slice.id() && offset + bytes <= region.bytes) return region.data + offset;
    }
    return nullptr;
  }

  static void Send(int fd, const v1::RegionReply& reply) {
    const std::string packet = reply.SerializeAsString();
    (void)!::send(fd, packet.data(), packet.size(), MSG_NOSIGNAL);
  }
  static void Confirm(int fd, std::int64_t call) {
    v1::RegionReply reply;
    reply.mutable_ended()->set_call(call);
    Send(fd, reply);
  }

  void Serve() {
    std::vector<int> fds;
    while (!stopped_) {
      std::vector<pollfd> polled = {{.fd = listener_, .events = POLLIN, .revents = 0}};
      for (int fd : fds) polled.push_back({.fd = fd, .events = POLLIN, .revents = 0});
      ::poll(polled.data(), polled.size(), 20);
      if (polled[0].revents != 0) fds.push_back(::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
      for (std::size_t i = 1; i < polled.size(); ++i) {
        if (polled[i].revents != 0 && !ReadPacket(polled[i].fd)) {
          fds.erase(std::find(fds.begin(), fds.end(), polled[i].fd));
          Drop(polled[i].fd);
        }
      }
    }
    for (int fd : fds) Drop(fd);
  }

  void Drop(int fd) {
    const std::lock_guard lock(mutex_);
    const auto region = regions_.find(fd);
    if (region != regions_.end()) {
      ::munmap(region->second.data, region->second.bytes);
      regions_.erase(region);
    }
    std::erase_if(held_, [&](const auto& each) { return each.first == fd; });
    ::close(fd);
    changed_.notify_all();
  }

  // False if the connection has ended.
  bool ReadPacket(int fd) {
    std::array<char, 4096> packet;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part{packet.data(), packet.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    v1::RegionRequest request;
    if (got <= 0 || !request.ParseFromArray(packet.data(), static_cast<int>(got))) return false;
    const std::lock_guard lock(mutex_);
    if (request.has_withdrawal()) {
      const std::int64_t call = request.withdrawal().call();
      withdrawn_.insert(call);
      if (holds_withdrawals) {
        held_.emplace_back(fd, call);
      } else {
        Confirm(fd, call);
      }
    } else {
      const cmsghdr* const rights = CMSG_FIRSTHDR(&message);
      if (rights == nullptr || rights->cmsg_type != SCM_RIGHTS) return false;
      int memfd = -1;
      std::memcpy(&memfd, CMSG_DATA(rights), sizeof(int));
      v1::RegionReply reply;
      if (handover_error) {
        *reply.mutable_error() = *handover_error;
      } else {
        struct stat info {};
        ::fstat(memfd, &info);
        const auto bytes = static_cast<std::size_t>(info.st_size);
        void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memfd, 0);
        const std::string id = "region of " + request.handover().ticket();
        regions_[fd] = {id, static_cast<char*>(data), bytes};
        reply.mutable_ready()->set_id(id);
      }
      ::close(memfd);
      Send(fd, reply);
    }
    changed_.notify_all();
    return true;
  }

  const std::string socket_path_;
  int listener_ = -1;
  std::atomic<bool> stopped_ = false, failed_ = false;
  std::atomic<int> opened_ = 0, asked_ = 0, info_calls_ = 0, sinks_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Region> regions_;  // by connection
  std::vector<std::pair<int, std::int64_t>> held_;
  std::set<std::int64_t> withdrawn_, calls_;
  std::vector<std::string> sources_;
  std::vector<std::int64_t> sizes_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

}  // namespace warpline::client

#endif  // WARPLINE_TESTS_CLIENT_SRC_FAKE_REGIONS_H_
