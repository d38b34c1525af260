// The calls of TensorService, with handles and their leases.
#ifndef WARPLINE_CLIENT_SRC_TENSOR_CLIENT_H_
#define WARPLINE_CLIENT_SRC_TENSOR_CLIENT_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/src/codec.h"
#include "client/src/connection.h"
#include "client/src/leases.h"
#include "client/src/message_writer.h"
#include "warpline/array.h"
#include "warpline/tensor.h"

namespace warpline::client {

// Implements the methods with the same names in warpline/client.h. Thread-safe.
class TensorClient {
 public:
  // The connection must outlive this. `channels`: the default number for transfers; 0: chosen by size.
  explicit TensorClient(Connection& connection, int channels = 0)
      : connection_(connection),
        channels_(channels),
        leases_(std::make_shared<Leases>(connection.channel())) {}
  ~TensorClient() { Close(); }
  TensorClient(const TensorClient&) = delete;
  TensorClient& operator=(const TensorClient&) = delete;

  // Drops the tensors that still have handles.
  void Close() { leases_->Close(); }
  // Returns a function that makes handles of new, owned tensors. It may outlive this, but its handles do
  // nothing then.
  MakeTensor make_tensor() const {
    return [leases = leases_](TensorInfo info) { return Tensor(std::move(info), leases, true); };
  }

  // Returns the function to call when a request that frees these tensors has succeeded.
  std::function<void()> on_freed(const std::vector<std::string>& ids) const {
    if (ids.empty()) return [] {};
    return [leases = leases_, ids] { leases->Freed(ids); };
  }

  absl::StatusOr<Tensor> Put(const ConstArray& array, absl::Duration timeout, const PutOptions& options);
  absl::StatusOr<Array> Get(const TensorInfo& tensor, absl::Duration timeout, const GetOptions& options);
  absl::StatusOr<Array> Get(const std::string& id, absl::Duration timeout, const GetOptions& options);
  absl::Status Drop(const std::string& id, absl::Duration timeout);
  absl::StatusOr<TensorInfo> Renew(const std::string& id, std::optional<absl::Duration> ttl,
                                   absl::Duration timeout);
  absl::StatusOr<Tensor> Attach(const std::string& id, absl::Duration timeout, const AttachOptions& options);
  absl::StatusOr<std::vector<TensorInfo>> List(absl::Duration timeout);

 private:
  absl::StatusOr<grpc::ByteBuffer> Call(const std::string& method,
                                        const std::function<OutgoingMessage()>& encode, absl::Time deadline,
                                        const std::string& request_id = "");
  absl::StatusOr<TensorInfo> RenewUntil(absl::Time deadline, const std::string& id,
                                        std::optional<absl::Duration> ttl, const std::string& request_id);
  absl::StatusOr<Array> GetUntil(absl::Time deadline, const TensorInfo& tensor, const GetOptions& options);

  Connection& connection_;
  const int channels_;
  const std::shared_ptr<Leases> leases_;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_TENSOR_CLIENT_H_
