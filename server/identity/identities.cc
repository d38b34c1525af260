#include "server/identity/identities.h"

#include <utility>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/status_macros.h"
#include "server/base/clock.h"
#include "server/base/read_file.h"
#include "server/identity/token.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

// The maximum number of remembered names: a client could have certificates with any number of subjects.
constexpr std::size_t kMaxNames = 65536;
constexpr char kBearer[] = "Bearer ";
constexpr char kNobody[] = "anonymous";
constexpr char kNoSubject[] = "cert:";

absl::StatusOr<std::string> ReadTokens(const std::string& path) {
  absl::StatusOr<std::string> text = ReadFile(path);
  if (text.ok()) return text;
  return absl::Status(text.status().code(), absl::StrCat("--tokens=", text.status().message()));
}

// Logs the number of owners. Warns if there are none, because then nobody has a token.
void LogOwners(std::string_view message, std::size_t owners) {
  Log(owners == 0 ? "warning" : "info", message, {{"owners", absl::StrCat(owners)}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Identities>> Identities::Open(const Options& options) {
  std::string text;
  std::vector<OwnerEntry> entries;
  if (!options.file.empty()) {
    ASSIGN_OR_RETURN(text, ReadTokens(options.file));
    ASSIGN_OR_RETURN(entries, ParseOwners(text, options.file));
    LogOwners("tokens and quotas", entries.size());
  }
  return std::unique_ptr<Identities>(new Identities(options, std::move(text), entries));
}

absl::Status Identities::Check(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, ReadTokens(file));
  return ParseOwners(text, file).status();
}

Identities::Identities(const Options& options, std::string text, const std::vector<OwnerEntry>& entries)
    : options_(options), used_text_(std::move(text)), seen_text_(used_text_) {
  table_ = TableOf(entries);
  if (!options_.file.empty()) thread_ = std::thread([this] { Loop(); });
}

Identities::~Identities() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<OwnerId> Identities::Identify(std::string_view authorization, const std::string& peer) const {
  const std::shared_ptr<const Table> now = table();
  // If tokens are not configured, the header is for someone else, perhaps a proxy on the way.
  if (!authorization.empty() && !options_.file.empty()) {
    // Schemes are compared without regard to case (RFC 9110).
    constexpr std::size_t kScheme = sizeof(kBearer) - 1;
    if (!absl::StartsWithIgnoreCase({authorization.data(), authorization.size()}, kBearer)) {
      return absl::UnauthenticatedError("the authorization header is not \"Bearer TOKEN\"");
    }
    // A client that does not know a token cannot choose its hash, so the duration of the search reveals
    // nothing about the token.
    const auto found = now->tokens.find(TokenDigest(authorization.substr(kScheme)));
    if (found == now->tokens.end()) {
      return absl::UnauthenticatedError("unknown token");
    }
    return found->second;
  }
  if (peer == kNoSubject) {
    return absl::UnauthenticatedError("the client's certificate has no subject, which would name its owner");
  }
  if (peer != kNobody) return NumberOf(peer);
  if (now->anonymous) return kAnonymous;
  return absl::UnauthenticatedError(
      "there was no token: this server wants \"authorization: Bearer TOKEN\" (--token-file of our clients)");
}

OwnerLimits Identities::LimitsOf(OwnerId owner) const {
  const std::shared_ptr<const Table> now = table();
  const auto found = now->limits.find(owner);
  return found != now->limits.end() ? found->second : now->others;
}

std::string Identities::NameOf(OwnerId owner) const {
  if (owner == kAnonymous) return kNobody;
  MutexLock lock(&mutex_);
  const auto found = names_.find(owner);
  return found != names_.end() ? found->second : "other";
}

OwnerId Identities::NumberOf(const std::string& name) const {
  if (name == kNobody) return kAnonymous;
  // Peers have numbers without the highest bit (ShareOf in server/rpc/peer.h). Abseil's hash has a different
  // seed in each process, so nobody can search for a subject with the number of another one.
  const OwnerId owner = absl::HashOf(name) | (OwnerId{1} << 63);
  MutexLock lock(&mutex_);
  if (names_.size() < kMaxNames) names_.emplace(owner, name);
  return owner;
}

std::shared_ptr<const Identities::Table> Identities::TableOf(const std::vector<OwnerEntry>& entries) const {
  auto table = std::make_shared<Table>();
  table->anonymous = options_.file.empty();
  for (const OwnerEntry& entry : entries) {
    if (entry.name == "default") {
      table->others = entry.limits;
      continue;
    }
    const OwnerId owner = NumberOf(entry.name);
    if (!entry.token_digest.empty()) table->tokens.emplace(entry.token_digest, owner);
    if (owner == kAnonymous) table->anonymous = true;
    table->limits.emplace(owner, entry.limits);
  }
  return table;
}

std::shared_ptr<const Identities::Table> Identities::table() const {
  MutexLock lock(&mutex_);
  return table_;
}

void Identities::Loop() {
  for (;;) {
    bool now = false;
    {
      MutexLock lock(&mutex_);
      mutex_.AwaitUntil([this] { return stopping_ || read_now_; }, After(options_.period));
      if (stopping_) return;
      now = std::exchange(read_now_, false);
    }
    Refresh(now);
  }
}

void Identities::ReadNow() {
  MutexLock lock(&mutex_);
  read_now_ = true;
}

void Identities::Refresh(bool now) {
  if (now) last_problem_.clear();
  absl::StatusOr<std::string> text = ReadTokens(options_.file);
  const bool is_settled = text == seen_text_;
  seen_text_ = text;
  if (!is_settled && !now) return;
  if (text.ok() && *text == used_text_) return last_problem_.clear();
  auto entries =
      text.ok() ? ParseOwners(*text, options_.file) : absl::StatusOr<std::vector<OwnerEntry>>(text.status());
  if (entries.ok() && entries->empty()) {
    // While a file is being written it may contain no owner for a moment. Using it then would lock everybody
    // out.
    entries = absl::InvalidArgumentError(absl::StrCat(options_.file, ": has no owner"));
  }
  if (entries.ok()) {
    const std::shared_ptr<const Table> next = TableOf(*entries);
    {
      MutexLock lock(&mutex_);
      table_ = next;
    }
    used_text_ = *std::move(text);
    last_problem_.clear();
    LogOwners("tokens and quotas replaced", entries->size());
    return;
  }
  if (last_problem_ == entries.status().message()) return;
  last_problem_ = std::string(entries.status().message());
  Log("warning", "the file of tokens has changed and cannot be used: what it held before goes on",
      {{"reason", last_problem_}});
}

}  // namespace warpline
