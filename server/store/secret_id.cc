#include "server/store/secret_id.h"

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace warpline {
namespace {

constexpr std::size_t kInstanceBytes = 4, kRandomBytes = 16;
constexpr std::size_t kIdLength = 2 * kInstanceBytes + 1 + 2 * kRandomBytes;
constexpr std::size_t kShown = 8;

std::string RandomDigits(std::size_t bytes) {
  std::string random(bytes, '\0');
  // The kernel always has random bytes once it has booted. Guessable ids are not acceptable.
  if (getentropy(random.data(), random.size()) != 0) std::abort();
  return absl::BytesToHexString(random);
}

bool IsHexadecimal(std::string_view digits) {
  return std::all_of(digits.begin(), digits.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool IsId(std::string_view id) {
  constexpr std::size_t kHyphen = 2 * kInstanceBytes;
  return id.size() == kIdLength && id[kHyphen] == '-' && IsHexadecimal(id.substr(0, kHyphen)) &&
         IsHexadecimal(id.substr(kHyphen + 1));
}

}  // namespace

SecretIds::SecretIds(std::string what, std::string remake)
    : what_(std::move(what)), remake_(std::move(remake)), instance_(RandomDigits(kInstanceBytes)) {}

std::string SecretIds::New() const { return absl::StrCat(instance_, "-", RandomDigits(kRandomBytes)); }

absl::Status SecretIds::Check(std::string_view id) const {
  if (!IsId(id)) {
    return absl::NotFoundError(
        absl::StrCat("a string of ", id.size(), " bytes that is the id of no ", what_));
  }
  const std::string_view instance = id.substr(0, instance_.size());
  if (instance == instance_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      what_, " ", Abbreviate(id), " was made by server ", std::string(instance), "; this is server ",
      instance_, ": if the server was started again, ", remake_, " the ", what_, " again"));
}

std::string Abbreviate(std::string_view id) {
  return IsId(id) ? absl::StrCat("...", std::string(id.substr(id.size() - kShown))) : std::string();
}

}  // namespace warpline
