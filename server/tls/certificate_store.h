// The certificates in use, which follow their files.
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

// Reads the files again and again on a thread of its own. What they hold is taken into use when it has
// changed, has been the same twice in a row, and fits together. Until then the certificates before go on:
// files are replaced one after the other and byte by byte, so a key may for a moment be that of another
// certificate, or a list of CAs be only half there. The log tells of both, once for each change. Thread-safe.
class CertificateStore {
 public:
  // Called with each set of certificates that is taken into use, the first one included.
  using Listener = std::function<void(const Certificates&)>;

  // Errors are those of ReadTlsFiles and CheckCertificates. `on_change` may be null, and is called by Open
  // and by the store's thread.
  static absl::StatusOr<std::unique_ptr<CertificateStore>> Open(const TlsFiles& files,
                                                                Listener on_change = nullptr,
                                                                absl::Duration period = absl::Seconds(1));
  ~CertificateStore();
  CertificateStore(const CertificateStore&) = delete;
  CertificateStore& operator=(const CertificateStore&) = delete;

  // Another object after each change.
  std::shared_ptr<const Certificates> current() const;
  // Returns whether clients are asked for certificates. This never changes.
  bool verifies_clients() const { return !files_.client_ca.empty(); }

 private:
  CertificateStore(const TlsFiles& files, Listener on_change, absl::Duration period, TlsFileContents contents,
                   Certificates certificates);
  void Loop();
  // Looks at the files once.
  void Refresh();
  absl::Status Use(TlsFileContents contents);

  const TlsFiles files_;
  const Listener on_change_;
  const absl::Duration period_;
  // Only the thread uses the next three members.
  TlsFileContents used_contents_;
  absl::StatusOr<TlsFileContents> seen_contents_;  // of the last look
  std::string last_problem_;

  mutable Mutex mutex_;
  std::shared_ptr<const Certificates> current_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_TLS_CERTIFICATE_STORE_H_
