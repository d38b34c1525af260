// Bearer tokens: secrets by which the server knows its clients, of which it keeps nothing but a hash.
#ifndef WARPLINE_SERVER_IDENTITY_TOKEN_H_
#define WARPLINE_SERVER_IDENTITY_TOKEN_H_

#include <string>
#include <string_view>

namespace warpline {

// "warpline_" and 32 random bytes in base64url. Nothing slower than SHA-256 is needed to hash it, as nobody
// can guess it.
std::string NewToken();

// SHA-256, 32 bytes.
std::string TokenDigest(std::string_view token);

}  // namespace warpline

#endif  // WARPLINE_SERVER_IDENTITY_TOKEN_H_
