// The action of --new-token.
#ifndef WARPLINE_SERVER_DAEMON_NEW_TOKEN_H_
#define WARPLINE_SERVER_DAEMON_NEW_TOKEN_H_

#include <string>

namespace warpline {

// Makes a token. Prints the token to stderr, and to stdout the lines of a tokens file that identify `name` by
// it. So the secret and the public part can go into different files.
void PrintNewToken(const std::string& name);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_NEW_TOKEN_H_
