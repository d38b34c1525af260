// Ids of what the server keeps for clients: resident tensors, shared regions. They are secrets: who knows one
// may use the thing, as far as owners do not differ.
#ifndef WARPLINE_SERVER_STORE_SECRET_ID_H_
#define WARPLINE_SERVER_STORE_SECRET_ID_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace warpline {

// Makes the ids of one kind of things of one server: 8 hexadecimal digits that name the server, a hyphen, and
// 32 random ones.
class SecretIds {
 public:
  // `what` they are ids of, and how clients get another, for errors: "tensor", "put".
  SecretIds(std::string what, std::string remake);

  std::string New() const;
  // OK if this server has made the id, whether or not there still is such a thing. FAILED_PRECONDITION if
  // another server has, NOT_FOUND if none makes such ids.
  absl::Status Check(std::string_view id) const;

 private:
  const std::string what_, remake_;
  const std::string instance_;
};

// Returns the part of an id that may stand in logs and errors: its last 8 digits, behind three dots. Returns
// nothing for a text that is no id.
std::string Abbreviate(std::string_view id);

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_SECRET_ID_H_
