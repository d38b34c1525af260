// The identities of callers: who a call comes from.
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

// Tells owners by their tokens and certificates, and what each may have. The file is read again on a thread
// of its own: what it holds counts when it has changed, has been the same twice in a row, and makes sense;
// until then what was there before goes on, and the log tells why. Calls that have begun are not ended.
// Thread-safe.
class Identities {
 public:
  struct Options {
    // The file of --tokens. If it is empty, there are no tokens, and clients without a certificate are let
    // in. The server's TLS keeps others out, except those who may open its unix socket.
    std::string file;
    absl::Duration period = absl::Seconds(1);  // between two looks at the file
  };
  // NOT_FOUND or PERMISSION_DENIED with the path if the file cannot be read; errors of ParseOwners.
  static absl::StatusOr<std::unique_ptr<Identities>> Open(const Options& options);
  ~Identities();
  Identities(const Identities&) = delete;
  Identities& operator=(const Identities&) = delete;

  // Returns the owner of a call. `authorization` is the call's header ("Bearer TOKEN"; empty: none). `peer`
  // is what the connection's certificate says: "cert:SUBJECT", or "anonymous" without a certificate. A token
  // takes precedence, because behind a proxy the certificate is the proxy's. UNAUTHENTICATED says what was
  // missing or wrong, but does not repeat the token.
  absl::StatusOr<OwnerId> Identify(std::string_view authorization, const std::string& peer) const;
  OwnerLimits LimitsOf(OwnerId owner) const;
  // "token:alice", for labels and logs; "anonymous" for whoever has not been identified.
  std::string NameOf(OwnerId owner) const;

 private:
  // The contents of the file.
  struct Table {
    absl::flat_hash_map<std::string, OwnerId> tokens;  // by digest
    absl::flat_hash_map<OwnerId, OwnerLimits> limits;  // of those that have a table of their own
    OwnerLimits others;
    bool anonymous = false;  // may come in
  };

  Identities(const Options& options, std::string text, const std::vector<OwnerEntry>& entries);
  // Its owner's number is the same for as long as the process lives.
  OwnerId NumberOf(const std::string& name) const;
  std::shared_ptr<const Table> TableOf(const std::vector<OwnerEntry>& entries) const;
  std::shared_ptr<const Table> table() const;
  void Loop();
  void Refresh();

  const Options options_;
  // Only the thread uses the next three members.
  std::string used_text_;
  absl::StatusOr<std::string> seen_text_;  // at the last look
  std::string last_problem_;

  mutable Mutex mutex_;
  // The names of owners that have been met. Bounded: see NumberOf.
  mutable absl::flat_hash_map<OwnerId, std::string> names_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const Table> table_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_IDENTITY_IDENTITIES_H_
