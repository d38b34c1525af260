// Plain connections to a server of the test's own.
#ifndef WARPLINE_TESTS_TESTING_CONNECT_H_
#define WARPLINE_TESTS_TESTING_CONNECT_H_

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>

#include "server/base/unique_fd.h"

namespace warpline {

// To the port of this address, on 127.0.0.1.
inline UniqueFd ConnectTo(const std::string& address) {
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  inet_pton(AF_INET, "127.0.0.1", &name.sin_addr);
  UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
  return fd;
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_TESTING_CONNECT_H_
