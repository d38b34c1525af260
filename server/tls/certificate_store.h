// The current certificates, which are updated when their files change.
#ifndef WARPLINE_SERVER_TLS_CERTIFICATE_STORE_H_
#define WARPLINE_SERVER_TLS_CERTIFICATE_STORE_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/base/mutex.h"
#include "server/tls/certificates.h"

namespace warpline {

// Reads the files periodically on its own thread. New contents are used when they have been the same twice in
// a row and fit together. Until then the previous certificates stay in use. Files are replaced one after the
// other and byte by byte, so for a moment a key may belong to another certificate, or a list of CAs may be
// incomplete. Both good and bad changes are logged, once each. Thread-safe.
class CertificateStore {
 public:
  // Called with each set of certificates that comes into use, including the first one.
  using Listener = std::function<void(const Certificates&)>;

  // Errors are those of ReadTlsFiles and CheckCertificates. `on_change` may be null. It is called by Open and
  // by the store's thread.
  static absl::StatusOr<std::unique_ptr<CertificateStore>> Open(const TlsFiles& files,
                                                                Listener on_change = nullptr,
                                                                absl::Duration period = absl::Seconds(1));
  ~CertificateStore();
  CertificateStore(const CertificateStore&) = delete;
  CertificateStore& operator=(const CertificateStore&) = delete;

  // Reads the files now, and uses them without waiting for a second look.
  void ReadNow();

  // Returns a different object after each change.
  std::shared_ptr<const Certificates> current() const;
  // Returns whether clients must show certificates. This never changes.
  bool verifies_clients() const { return !files_.client_ca.empty(); }

 private:
  CertificateStore(const TlsFiles& files, Listener on_change, absl::Duration period, TlsFileContents contents,
                   Certificates certificates);
  void Loop();
  // Checks the files once. `now`: as ReadNow asks.
  void Refresh(bool now);
  absl::Status Use(TlsFileContents contents);

  const TlsFiles files_;
  const Listener on_change_;
  const absl::Duration period_;
  // Only the thread uses the next three members.
  TlsFileContents used_contents_;
  absl::StatusOr<TlsFileContents> seen_contents_;  // from the last check
  std::string last_problem_;

  mutable Mutex mutex_;
  std::shared_ptr<const Certificates> current_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool read_now_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_TLS_CERTIFICATE_STORE_H_
