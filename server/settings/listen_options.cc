// The rules for where the server may listen, and where plaintext is allowed.
#include <arpa/inet.h>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/settings/options.h"

namespace warpline {
namespace {

// Other names may resolve to any address, now or later, even if they look like an address.
bool IsLoopback(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  in_addr v4{};
  return inet_pton(AF_INET, host.c_str(), &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127;
}

}  // namespace

std::vector<std::string> ServerOptions::AddressesBeyondLoopback() const {
  std::vector<std::string> beyond;
  const auto add = [&](const char* flag, const std::vector<std::string>& addresses) {
    for (const std::string& address : addresses) {
      if (!absl::StartsWith(address, "unix:") && !IsLoopback(address)) {
        beyond.push_back(absl::StrCat("--", flag, "=", address));
      }
    }
  };
  add("listen", listen);
  add("proxy-listen", proxy_listen);
  if (!metrics_listen.empty() && !IsLoopback(metrics_listen)) {
    beyond.push_back(absl::StrCat("--metrics-listen=", metrics_listen));
  }
  return beyond;
}

absl::Status ServerOptions::CheckListen() const {
  for (const std::string& address : listen) {
    if (absl::EndsWith(address, ":0")) continue;
    if (address == metrics_listen) {
      return absl::InvalidArgumentError(
          absl::StrCat("--metrics-listen=", metrics_listen, ": must not be an address of --listen"));
    }
    if (absl::c_linear_search(proxy_listen, address)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--proxy-listen=", address, ": must not be an address of --listen"));
    }
  }
  return absl::OkStatus();
}

absl::Status ServerOptions::CheckTls() const {
  if (tls.cert.empty() != tls.key.empty()) {
    return absl::InvalidArgumentError(tls.cert.empty()
                                          ? absl::StrCat("--tls-key=", tls.key, ": needs --tls-cert")
                                          : absl::StrCat("--tls-cert=", tls.cert, ": needs --tls-key"));
  }
  if (!tls.client_ca.empty() && !tls.configured()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tls-client-ca=", tls.client_ca, ": needs --tls-cert and --tls-key"));
  }
  const std::vector<std::string> beyond = AddressesBeyondLoopback();
  if (tls.configured() || insecure || beyond.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(beyond.front(),
                   ": must be loopback or unix:/path unless TLS is configured (--tls-cert, "
                   "--tls-key); --insecure allows it without"));
}

}  // namespace warpline
