// Flags that contradict each other, and the rules for where plaintext is allowed.
#include <arpa/inet.h>

#include <algorithm>

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

std::vector<std::string> ServerOptions::Contradictions() const {
  std::vector<std::string> found;
  const auto must_differ = [&](const char* flag, const std::vector<std::string>& addresses) {
    for (auto address = addresses.begin(); address != addresses.end(); ++address) {
      if (absl::EndsWith(*address, ":0") || std::find(addresses.begin(), address, *address) == address)
        continue;
      found.push_back(absl::StrCat("--", flag, "=", *address, ": must be given only once"));
    }
  };
  must_differ("listen", listen);
  must_differ("proxy-listen", proxy_listen);
  for (const std::string& address : listen) {
    if (absl::EndsWith(address, ":0")) continue;
    if (address == metrics_listen) {
      found.push_back(
          absl::StrCat("--metrics-listen=", metrics_listen, ": must not be an address of --listen"));
    }
    if (absl::c_linear_search(proxy_listen, address)) {
      found.push_back(absl::StrCat("--proxy-listen=", address, ": must not be an address of --listen"));
    }
  }
  if (tls.cert.empty() && !tls.key.empty()) {
    found.push_back(absl::StrCat("--tls-key=", tls.key, ": needs --tls-cert"));
  }
  if (!tls.cert.empty() && tls.key.empty()) {
    found.push_back(absl::StrCat("--tls-cert=", tls.cert, ": needs --tls-key"));
  }
  if (!tls.client_ca.empty() && tls.cert.empty() && tls.key.empty()) {
    found.push_back(absl::StrCat("--tls-client-ca=", tls.client_ca, ": needs --tls-cert and --tls-key"));
  }
  // Whoever gave one of the files wants TLS, and hears above what is missing.
  if (tls.cert.empty() && tls.key.empty() && !insecure) {
    for (const std::string& address : AddressesBeyondLoopback()) {
      found.push_back(absl::StrCat(address,
                                   ": must be loopback or unix:/path unless TLS is configured (--tls-cert, "
                                   "--tls-key); --insecure allows it without"));
    }
  }
  if (drain_delay > grace) {
    found.push_back(absl::StrCat("--drain-delay=", absl::FormatDuration(drain_delay),
                                 ": must be at most --grace = ", absl::FormatDuration(grace)));
  }
  if (max_connection_age > absl::ZeroDuration() && max_connection_age < absl::Seconds(1)) {
    found.push_back(absl::StrCat("--max-connection-age=", absl::FormatDuration(max_connection_age),
                                 ": must be 0s or at least 1s"));
  }
  return found;
}

}  // namespace warpline
