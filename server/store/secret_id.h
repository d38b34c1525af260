// Ids of things that the server keeps for clients: resident tensors and shared regions. They are secrets:
// whoever knows an id may use the thing, unless it belongs to another owner.
#ifndef WARPLINE_SERVER_STORE_SECRET_ID_H_
#define WARPLINE_SERVER_STORE_SECRET_ID_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace warpline {

// Makes the ids of one kind of thing on one server: 8 hexadecimal digits that name the server, a hyphen, and
// 32 random digits.
class SecretIds {
 public:
  // For errors: `what` the ids are for, and how clients get a new one: "tensor", "put".
  SecretIds(std::string what, std::string remake);

  std::string New() const;
  // OK if this server has made the id, even if the thing no longer exists. FAILED_PRECONDITION if another
  // server has made it, NOT_FOUND if no server makes such ids.
  absl::Status Check(std::string_view id) const;

 private:
  const std::string what_, remake_;
  const std::string instance_;
};

// Returns the part of an id that may appear in logs and errors: three dots and its last 8 digits. Returns
// nothing if the text is not an id.
std::string Abbreviate(std::string_view id);

}  // namespace warpline

#endif  // WARPLINE_SERVER_STORE_SECRET_ID_H_
