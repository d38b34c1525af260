// The action of --new-token.
#ifndef WARPLINE_SERVER_DAEMON_NEW_TOKEN_H_
#define WARPLINE_SERVER_DAEMON_NEW_TOKEN_H_

#include <string>

namespace warpline {

// Makes a token, and prints it to stderr, and to stdout the lines of a tokens file by which `name` is known
// by it: the secret apart from what is not, so that each can go into a file of its own.
void PrintNewToken(const std::string& name);

}  // namespace warpline

#endif  // WARPLINE_SERVER_DAEMON_NEW_TOKEN_H_
