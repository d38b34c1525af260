// Shared regions as a client makes them, step by step, so that a test can do each step wrongly.
#ifndef WARPLINE_TESTS_E2E_REGIONS_H_
#define WARPLINE_TESTS_E2E_REGIONS_H_

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/base/unique_fd.h"
#include "tests/e2e/requests.h"
#include "tests/e2e/tensors.h"
#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline {

inline UniqueFd Memfd(std::size_t bytes, int seals = F_SEAL_SHRINK | F_SEAL_GROW) {
  UniqueFd fd(memfd_create("region", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes)), 0);
  EXPECT_EQ(fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  return fd;
}

// A connection to the region socket.
class RegionSocket {
 public:
  explicit RegionSocket(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    std::memcpy(name.sun_path, path.data(), path.size());
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)), 0) << path;
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }

  // Sends the packet. Returns whether the kernel took it.
  bool Send(const std::string& packet, std::vector<int> descriptors = {}) {
    iovec data{const_cast<char*>(packet.data()), packet.size()};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    std::vector<char> control(CMSG_SPACE(descriptors.size() * sizeof(int)));
    if (!descriptors.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const part = CMSG_FIRSTHDR(&message);
      part->cmsg_level = SOL_SOCKET;
      part->cmsg_type = SCM_RIGHTS;
      part->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(part), descriptors.data(), descriptors.size() * sizeof(int));
    }
    return sendmsg(socket_.get(), &message, MSG_NOSIGNAL) == static_cast<ssize_t>(packet.size());
  }
  bool HandOver(const std::string& ticket, std::vector<int> descriptors) {
    v1::RegionRequest request;
    request.mutable_handover()->set_ticket(ticket);
    return Send(request.SerializeAsString(), std::move(descriptors));
  }
  bool Withdraw(std::int64_t call) {
    v1::RegionRequest request;
    request.mutable_withdrawal()->set_call(call);
    return Send(request.SerializeAsString());
  }
  // Nothing at the end of the connection.
  std::optional<v1::RegionReply> Receive() {
    std::string packet(4096, '\0');
    const ssize_t size = recv(socket_.get(), packet.data(), packet.size(), 0);
    if (size <= 0) return std::nullopt;
    v1::RegionReply reply;
    EXPECT_TRUE(reply.ParseFromArray(packet.data(), static_cast<int>(size)));
    return reply;
  }
  // The error that is the last thing to come.
  v1::RegionError ReceiveError() {
    const auto reply = Receive();
    EXPECT_TRUE(reply.has_value() && reply->has_error()) << (reply ? reply->ShortDebugString() : "no reply");
    EXPECT_FALSE(Receive().has_value()) << "the connection goes on";
    return reply.has_value() ? reply->error() : v1::RegionError();
  }
  bool HasReply() const {
    char byte;
    return recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
  }
  void Close() { socket_.Reset(); }

 private:
  UniqueFd socket_;
};

inline Answer<v1::OpenResponse> OpenTicket(const std::shared_ptr<grpc::Channel>& channel,
                                           std::int64_t bytes) {
  v1::OpenRequest request;
  request.set_size_bytes(bytes);
  const auto stub = v1::RegionService::NewStub(channel);
  return CallStub<v1::OpenResponse>(*stub, &v1::RegionService::Stub::Open, request);
}

// A region as it should be.
class SharedRegion {
 public:
  SharedRegion(const std::shared_ptr<grpc::Channel>& channel, const std::string& path, std::size_t bytes)
      : socket_(path), bytes_(bytes) {
    const auto ticket = OpenTicket(channel, static_cast<std::int64_t>(bytes));
    EXPECT_TRUE(ticket.status.ok()) << ticket.status.error_message();
    memory_ = Memfd(bytes);
    address_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory_.get(), 0);
    EXPECT_NE(address_, MAP_FAILED);
    EXPECT_TRUE(socket_.HandOver(ticket.response.ticket(), {memory_.get()}));
    const auto reply = socket_.Receive();
    EXPECT_TRUE(reply.has_value() && reply->has_ready()) << (reply ? reply->ShortDebugString() : "no reply");
    if (reply.has_value()) id_ = reply->ready().id();
  }
  ~SharedRegion() { munmap(address_, bytes_); }
  SharedRegion(const SharedRegion&) = delete;
  SharedRegion& operator=(const SharedRegion&) = delete;

  const std::string& id() const { return id_; }
  int memory() const { return memory_.get(); }
  RegionSocket& socket() { return socket_; }
  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(address_), bytes_}; }
  // The elements at an offset, which may begin anywhere.
  template <typename T>
  void Write(std::int64_t offset, const std::vector<T>& values) {
    std::memcpy(bytes().subspan(static_cast<std::size_t>(offset)).data(), values.data(),
                values.size() * sizeof(T));
  }
  template <typename T>
  std::vector<T> Read(std::int64_t offset, std::size_t count) const {
    std::vector<T> values(count);
    std::memcpy(values.data(), bytes().subspan(static_cast<std::size_t>(offset)).data(), count * sizeof(T));
    return values;
  }
  void Name(v1::RegionSlice* slice, std::int64_t offset, std::int64_t call = 0) const {
    slice->set_id(id_);
    slice->set_offset(offset);
    slice->set_call(call);
  }
  // Makes the slice the source of a tensor.
  void Fill(v1::Tensor* tensor, v1::DataType data_type, const std::vector<std::int64_t>& shape,
            std::int64_t offset, std::int64_t call = 0) const {
    tensor->set_data_type(data_type);
    tensor->mutable_shape()->Assign(shape.begin(), shape.end());
    Name(tensor->mutable_region(), offset, call);
  }

 private:
  RegionSocket socket_;
  const std::size_t bytes_;
  UniqueFd memory_;
  void* address_ = nullptr;
  std::string id_;
};

}  // namespace warpline

#endif  // WARPLINE_TESTS_E2E_REGIONS_H_
