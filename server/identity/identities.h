// The identities of callers: who makes a call.
#ifndef WARPLINE_SERVER_IDENTITY_IDENTITIES_H_
#define WARPLINE_SERVER_IDENTITY_IDENTITIES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/base/owner.h"
#include "server/base/owner_limits.h"
#include "server/identity/owner_file.h"

namespace warpline {

// Identifies owners by their tokens and certificates, and knows their limits. A separate thread reads the
// file periodically. New contents are used when they have been the same twice in a row and are valid. Until
// then the previous contents stay in use, and the log says why. Calls that have begun are not ended.
// Thread-safe.
class Identities {
 public:
  struct Options {
    // The file of --tokens. If it is empty, there are no tokens, and clients without a certificate are
    // accepted. Only the server's TLS refuses clients then, except those that may open its unix socket.
    std::string file;
    absl::Duration period = absl::Seconds(1);  // between two checks of the file
  };
  // NOT_FOUND or PERMISSION_DENIED with the path if the file cannot be read; errors of ParseOwners.
  static absl::StatusOr<std::unique_ptr<Identities>> Open(const Options& options);
  // Returns the error that Open would return for this file.
  static absl::Status Check(const std::string& file);
  ~Identities();
  Identities(const Identities&) = delete;
  Identities& operator=(const Identities&) = delete;

  // Reads the file now, and uses what it has without waiting for a second look.
  void ReadNow();

  // Returns the owner of a call. `authorization` is the call's header ("Bearer TOKEN"; empty: none). `peer`
  // is the identity in the connection's certificate: "cert:SUBJECT", or "anonymous" without a certificate. A
  // token takes precedence, because behind a proxy the certificate is the proxy's. UNAUTHENTICATED says what
  // was missing or wrong, but does not repeat the token.
  absl::StatusOr<OwnerId> Identify(std::string_view authorization, const std::string& peer) const;
  OwnerLimits LimitsOf(OwnerId owner) const;
  // Returns for example "token:alice", for labels and logs; "anonymous" for unidentified callers.
  std::string NameOf(OwnerId owner) const;

 private:
  // The contents of the file.
  struct Table {
    absl::flat_hash_map<std::string, OwnerId> tokens;  // by digest
    absl::flat_hash_map<OwnerId, OwnerLimits> limits;  // only owners with their own table
    OwnerLimits others;
    bool anonymous = false;  // whether unidentified callers are accepted
  };

  Identities(const Options& options, std::string text, const std::vector<OwnerEntry>& entries);
  // Returns the number of the owner with this name, which is constant while the process lives.
  OwnerId NumberOf(const std::string& name) const;
  std::shared_ptr<const Table> TableOf(const std::vector<OwnerEntry>& entries) const;
  std::shared_ptr<const Table> table() const;
  void Loop();
  // `now`: as ReadNow asks.
  void Refresh(bool now);

  const Options options_;
  // Only the thread uses the next three members.
  std::string used_text_;
  absl::StatusOr<std::string> seen_text_;  // at the last check
  std::string last_problem_;

  mutable Mutex mutex_;
  // The names of owners that have been seen. Limited: see NumberOf.
  mutable absl::flat_hash_map<OwnerId, std::string> names_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Table> table_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_now_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_IDENTITY_IDENTITIES_H_
