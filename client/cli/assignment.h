// NAME=FILE on the command line.
#ifndef WARPLINE_CLIENT_CLI_ASSIGNMENT_H_
#define WARPLINE_CLIENT_CLI_ASSIGNMENT_H_

#include <string>
#include <string_view>

namespace warpline::client {

struct Assignment {
  std::string name;  // empty if the word is a path only
  std::string type;  // of NAME:TYPE=FILE; mostly empty
  std::string path;
};

// Splits at the first '=' that has a name before it: letters, digits, '_', '.' and '-'. So "./a=b.npy" is a
// path.
Assignment SplitAssignment(std::string_view word);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_ASSIGNMENT_H_
