#include "server/tls/certificate_store.h"

#include <utility>

#include "absl/time/clock.h"
#include "kernels/status_macros.h"
#include "server/observe/log.h"

namespace warpline {
namespace {

std::string Printed(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

}  // namespace

absl::StatusOr<std::unique_ptr<CertificateStore>> CertificateStore::Open(const TlsFiles& files,
                                                                         Listener on_change,
                                                                         absl::Duration period) {
  ASSIGN_OR_RETURN(const TlsFileContents contents, ReadTlsFiles(files));
  ASSIGN_OR_RETURN(Certificates certificates, CheckCertificates(files, contents, absl::Now()));
  return std::unique_ptr<CertificateStore>(
      new CertificateStore(files, std::move(on_change), period, contents, std::move(certificates)));
}

CertificateStore::CertificateStore(const TlsFiles& files, Listener on_change, absl::Duration period,
                                   TlsFileContents contents, Certificates certificates)
    : files_(files),
      on_change_(std::move(on_change)),
      period_(period),
      used_contents_(std::move(contents)),
      seen_contents_(used_contents_),
      current_(std::make_shared<const Certificates>(std::move(certificates))) {
  if (on_change_ != nullptr) on_change_(*current());
  thread_ = std::thread([this] { Loop(); });
}

CertificateStore::~CertificateStore() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

std::shared_ptr<const Certificates> CertificateStore::current() const {
  MutexLock lock(&mutex_);
  return current_;
}

void CertificateStore::Loop() {
  for (;;) {
    bool now = false;
    {
      MutexLock lock(&mutex_);
      mutex_.AwaitUntil([this] { return stopping_ || read_now_; }, After(period_));
      if (stopping_) return;
      now = std::exchange(read_now_, false);
    }
    Refresh(now);
  }
}

void CertificateStore::ReadNow() {
  MutexLock lock(&mutex_);
  read_now_ = true;
}

void CertificateStore::Refresh(bool now) {
  if (now) last_problem_.clear();
  absl::StatusOr<TlsFileContents> contents = ReadTlsFiles(files_);
  const bool is_settled = contents == seen_contents_;
  seen_contents_ = contents;
  if (!is_settled && !now) return;
  if (contents.ok() && *contents == used_contents_) {
    last_problem_.clear();
    return;
  }
  const absl::Status problem = contents.ok() ? Use(*std::move(contents)) : contents.status();
  // Tried again each time, because a certificate may become valid without a change of its file.
  if (last_problem_ == problem.message()) return;
  last_problem_ = std::string(problem.message());
  if (problem.ok()) return;
  Log("warning", "TLS files have changed and cannot be used: the certificate before goes on",
      {{"reason", last_problem_}});
}

absl::Status CertificateStore::Use(TlsFileContents contents) {
  ASSIGN_OR_RETURN(Certificates certificates, CheckCertificates(files_, contents, absl::Now()));
  const auto next = std::make_shared<const Certificates>(std::move(certificates));
  {
    MutexLock lock(&mutex_);
    current_ = next;
  }
  used_contents_ = std::move(contents);
  if (on_change_ != nullptr) on_change_(*next);
  Log("info", "TLS certificate replaced",
      {{"subject", next->subject}, {"expires", Printed(next->not_after)}});
  return absl::OkStatus();
}

}  // namespace warpline
