// NAME=FILE on the command line.
#ifndef WARPLINE_CLIENT_CLI_ASSIGNMENT_H_
#define WARPLINE_CLIENT_CLI_ASSIGNMENT_H_

#include <string>
#include <string_view>

namespace warpline::client {

struct Assignment {
  std::string name;  // empty if the word is only a path
  std::string type;  // TYPE in NAME:TYPE=FILE; usually empty
  std::string path;
};

// Splits at the first '=' with a valid name before it: letters, digits, '_', '.' and '-'. So "./a=b.npy" is a
// path.
Assignment SplitAssignment(std::string_view word);

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_CLI_ASSIGNMENT_H_
