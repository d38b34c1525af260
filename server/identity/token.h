// Bearer tokens: secrets by which the server recognizes clients. The server keeps only their hashes.
#ifndef WARPLINE_SERVER_IDENTITY_TOKEN_H_
#define WARPLINE_SERVER_IDENTITY_TOKEN_H_

#include <string>
#include <string_view>

namespace warpline {

// Returns "warpline_" and 32 random bytes in base64url. SHA-256 is slow enough to hash a token, because
// nobody can guess one.
std::string NewToken();

// Returns the SHA-256 of the token, 32 bytes.
std::string TokenDigest(std::string_view token);

}  // namespace warpline

#endif  // WARPLINE_SERVER_IDENTITY_TOKEN_H_
