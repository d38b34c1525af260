// Addresses for servers of tests.
#ifndef WARPLINE_TESTS_TESTING_BOUND_H_
#define WARPLINE_TESTS_TESTING_BOUND_H_

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "server/base/listener.h"

namespace warpline {

// Takes each address, or ends the process.
inline std::vector<Listener> Bound(const std::vector<std::string>& addresses) {
  std::vector<Listener> listeners;
  for (const std::string& address : addresses) {
    auto listener = Listener::Bind(address, "--listen");
    if (!listener.ok()) {
      std::fprintf(stderr, "%s\n", listener.status().ToString().c_str());
      std::abort();
    }
    listeners.push_back(*std::move(listener));
  }
  return listeners;
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_TESTING_BOUND_H_
