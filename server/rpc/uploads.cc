#include "server/rpc/uploads.h"

namespace warpline {

void Uploads::Append(Upload& upload) {
  upload.previous_ = last_;
  upload.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : first_) = &upload;
  last_ = &upload;
}

void Uploads::Unlink(Upload& upload) {
  (upload.previous_ != nullptr ? upload.previous_->next_ : first_) = upload.next_;
  (upload.next_ != nullptr ? upload.next_->previous_ : last_) = upload.previous_;
}

void Uploads::Add(Upload& upload, Connection& connection, MonotonicTime now) {
  upload.connection_ = &connection;
  upload.begun_ = upload.since_ = now;
  upload.bytes_since_ = connection.bytes_received();
  connection.AddUpload(1);
  Append(upload);
}

void Uploads::Remove(Upload& upload) {
  if (!upload.given_up_) upload.connection_->AddUpload(-1);
  Unlink(upload);
}

int Uploads::Look(const Progress& progress, absl::Duration slow_after, MonotonicTime now) {
  const MonotonicTime overdue = now - absl::ToChronoNanoseconds(progress.window);
  const MonotonicTime slow = now - absl::ToChronoNanoseconds(slow_after);
  int given_up = 0;
  // Uploads that make progress move to the end of the list. So the loop ends at the upload that was last when
  // it began.
  Upload* const end = last_;
  for (Upload *upload = first_, *next = nullptr; upload != nullptr; upload = upload == end ? nullptr : next) {
    next = upload->next_;
    if (!upload->slow_ && upload->begun_ <= slow) {
      upload->slow_ = true;
      upload->OnSlow();
    }
    if (upload->given_up_ || upload->since_ > overdue) continue;
    Connection& connection = *upload->connection_;
    const std::uint64_t received = connection.bytes_received();
    const auto uploads = static_cast<std::uint64_t>(connection.uploads());
    if (received - upload->bytes_since_ >= progress.bytes * uploads) {
      upload->since_ = now;
      upload->bytes_since_ = received;
      Unlink(*upload);
      Append(*upload);
      continue;
    }
    upload->given_up_ = true;
    connection.AddUpload(-1);  // the remaining uploads then need fewer bytes
    upload->GiveUp();
    ++given_up;
  }
  return given_up;
}

}  // namespace warpline
