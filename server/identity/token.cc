#include "server/identity/token.h"

#include <openssl/evp.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace warpline {

std::string NewToken() {
  std::string random(32, '\0');
  // The kernel always has random bytes once it has booted.
  if (getentropy(random.data(), random.size()) != 0) std::abort();
  return absl::StrCat("warpline_", absl::WebSafeBase64Escape(random));
}

std::string TokenDigest(std::string_view token) {
  std::string digest(32, '\0');
  unsigned int size = 0;
  const int ok = EVP_Digest(token.data(), token.size(), reinterpret_cast<unsigned char*>(digest.data()),
                            &size, EVP_sha256(), nullptr);
  if (ok != 1 || size != digest.size()) std::abort();  // fails only without memory
  return digest;
}

}  // namespace warpline
