// Addresses of sockets.
#ifndef WARPLINE_TESTS_TESTING_ADDRESSES_H_
#define WARPLINE_TESTS_TESTING_ADDRESSES_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <cstring>

namespace warpline {

inline sockaddr_storage V4(const char* host, std::uint16_t port) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  inet_pton(AF_INET, host, &v4.sin_addr);
  sockaddr_storage address{};
  std::memcpy(&address, &v4, sizeof(v4));
  return address;
}

inline sockaddr_storage V6(const char* host, std::uint16_t port) {
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  inet_pton(AF_INET6, host, &v6.sin6_addr);
  sockaddr_storage address{};
  std::memcpy(&address, &v6, sizeof(v6));
  return address;
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_TESTING_ADDRESSES_H_
