#include "server/daemon/new_token.h"

#include <cstdio>

#include "absl/strings/escaping.h"
#include "server/identity/token.h"

namespace warpline {

void PrintNewToken(const std::string& name) {
  const std::string token = NewToken();
  std::fprintf(stderr, "%s\n", token.c_str());
  std::printf("[owner.\"token:%s\"]\nsha256 = \"%s\"\n", name.c_str(),
              absl::BytesToHexString(TokenDigest(token)).c_str());
}

}  // namespace warpline
