#include "server/identity/owner_file.h"

#include <openssl/crypto.h>

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/parse_bytes.h"
#include "server/base/parse_toml.h"

namespace warpline {
namespace {

constexpr std::size_t kDigestBytes = 32;
// The smallest quota of bytes. It is larger than the bytes of a tensor transfer in progress.
constexpr std::int64_t kMinBytes = std::int64_t{8} << 20;
constexpr double kMinWeight = 0.01, kMaxWeight = 100;
constexpr char kKeys[] = "sha256, weight, jobs, bytes, resident-bytes, region-bytes";

// The place of a value, for messages: path, line, owner and key.
struct Spot {
  const std::string& path;
  const std::string& owner;
  const std::string& key;
  const toml::value& value;

  absl::Status Wants(const std::string& what) const {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", LineOf(value), ": owner \"", owner, "\": ", key, " must be ", what));
  }
};

absl::StatusOr<double> Weight(const Spot& spot) {
  const toml::value& value = spot.value;
  const double weight = value.is_integer()    ? static_cast<double>(value.as_integer())
                        : value.is_floating() ? value.as_floating()
                                              : 0;
  if (weight >= kMinWeight && weight <= kMaxWeight) return weight;
  return spot.Wants(absl::StrCat("a number from ", kMinWeight, " to ", kMaxWeight));
}

absl::StatusOr<std::int64_t> Count(const Spot& spot) {
  if (spot.value.is_integer() && spot.value.as_integer() >= 1) return spot.value.as_integer();
  return spot.Wants("a whole number above 0");
}

absl::StatusOr<std::int64_t> Bytes(const Spot& spot, std::int64_t least) {
  std::int64_t bytes = -1;
  if (spot.value.is_integer()) bytes = spot.value.as_integer();
  if (spot.value.is_string()) bytes = ParseBytes(CharactersOf(spot.value)).value_or(-1);
  if (bytes >= least) return bytes;
  return spot.Wants(absl::StrCat("a number of bytes from ", least, " on, such as 8388608 or \"1G\""));
}

absl::StatusOr<std::string> Digest(const Spot& spot) {
  if (!absl::StartsWith(spot.owner, "token:")) return spot.Wants("left out: only token:NAME has a token");
  const std::string text = spot.value.is_string() ? CharactersOf(spot.value) : "";
  const bool is_digest = text.size() == 2 * kDigestBytes &&
                         text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (!is_digest) return spot.Wants("the SHA-256 of a token, in 64 hexadecimal digits");
  std::string digest(kDigestBytes, '\0');
  std::size_t size = 0;
  OPENSSL_hexstr2buf_ex(reinterpret_cast<unsigned char*>(digest.data()), digest.size(), &size, text.c_str(),
                        '\0');
  return digest;
}

absl::Status ReadKey(const Spot& spot, OwnerEntry& entry) {
  OwnerLimits& limits = entry.limits;
  if (spot.key == "sha256") {
    ASSIGN_OR_RETURN(entry.token_digest, Digest(spot));
  } else if (spot.key == "weight") {
    ASSIGN_OR_RETURN(limits.weight, Weight(spot));
  } else if (spot.key == "jobs") {
    ASSIGN_OR_RETURN(limits.jobs, Count(spot));
  } else if (spot.key == "bytes") {
    ASSIGN_OR_RETURN(limits.bytes, Bytes(spot, kMinBytes));
  } else if (spot.key == "resident-bytes") {
    ASSIGN_OR_RETURN(limits.resident_bytes, Bytes(spot, 0));
  } else if (spot.key == "region-bytes") {
    ASSIGN_OR_RETURN(limits.region_bytes, Bytes(spot, 0));
  } else {
    return absl::InvalidArgumentError(absl::StrCat(spot.path, ":", LineOf(spot.value), ": owner \"",
                                                   spot.owner, "\": unknown key ", spot.key,
                                                   "; known: ", kKeys));
  }
  return absl::OkStatus();
}

bool IsOwner(const std::string& name) {
  if (name == "anonymous" || name == "default") return true;
  for (const char* kind : {"token:", "cert:"}) {
    if (absl::StartsWith(name, kind) && name.size() > std::string(kind).size()) return true;
  }
  return false;
}

absl::StatusOr<OwnerEntry> ReadOwner(const std::string& name, const toml::value& table,
                                     const std::string& path) {
  // A lambda, because toml11 counts the lines from the beginning each time.
  const auto line = [&] { return LineOf(table); };
  if (!IsOwner(name) || !table.is_table()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ":", line(), ": \"", name,
        R"(" is no owner: tables are [owner."token:NAME"], [owner."cert:SUBJECT"], [owner.anonymous] or )"
        "[owner.default]"));
  }
  OwnerEntry entry;
  entry.name = name;
  for (const auto& [key, value] : table.as_table()) {
    RETURN_IF_ERROR(ReadKey({path, name, key, value}, entry));
  }
  if (absl::StartsWith(name, "token:") && entry.token_digest.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ":", line(), ": owner \"", name, "\": sha256 is missing"));
  }
  return entry;
}

}  // namespace

absl::StatusOr<std::vector<OwnerEntry>> ParseOwners(const std::string& text, const std::string& path) {
  ASSIGN_OR_RETURN(const toml::value root, ParseToml(text, path));
  std::vector<OwnerEntry> entries;
  std::set<std::string> digests;
  for (const auto& [key, owners] : root.as_table()) {
    if (key != "owner" || !owners.is_table()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", LineOf(owners), ": \"", key, "\" is unknown: all tables are [owner.NAME]"));
    }
    for (const auto& [name, table] : owners.as_table()) {
      ASSIGN_OR_RETURN(OwnerEntry entry, ReadOwner(name, table, path));
      if (!entry.token_digest.empty() && !digests.insert(entry.token_digest).second) {
        return absl::InvalidArgumentError(
            absl::StrCat(path, ": owner \"", name, "\": another owner has the same token"));
      }
      entries.push_back(std::move(entry));
    }
  }
  return entries;
}

}  // namespace warpline
