// Calls of TensorService against a plain model of what they should do.
#ifndef WARPLINE_TESTS_FUZZ_TENSOR_CHECK_H_
#define WARPLINE_TESTS_FUZZ_TENSOR_CHECK_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "server/device/backend.h"
#include "server/memory/copy_payload.h"
#include "server/observe/metrics.h"
#include "server/rpc/put_sequence.h"
#include "server/store/tensor_store.h"
#include "tests/fuzz/call_sequence.h"
#include "tests/fuzz/tensor_calls.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::testing {

// The functions behind TensorService with a TensorStore of small limits on the cpu backend. In messages, the
// ids "0" to "9" stand for the tensors that the sequence has made, in their order. Every answer is compared
// with the model: its code, what is missing, which tensors are listed, and all bytes that are read. Calls
// with leases of less than an hour are left out, since their tensors may be gone at any time. Not
// thread-safe.
class TensorCheck {
 public:
  TensorCheck();

  // Runs the calls, then gives up what is left, and sees that nothing is charged to anybody. Empty if all is
  // as the model has it, else what is not.
  std::string Check(const CallSequence& calls);

  struct Counts {
    int calls = 0, created = 0, committed = 0, read = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Tensor {
    OwnerId owner = 0;
    std::string id;
    std::size_t charged = 0;
    std::vector<std::uint8_t> bytes;
    std::vector<bool> written;
    int writers = 0;
    bool dropped = false;
    std::size_t missing() const;
  };
  struct Stream {
    std::unique_ptr<PutSequence> sequence;
    OwnerId owner = 0;
    std::optional<std::size_t> tensor;
    std::size_t begin = 0;
    std::string bytes;
    std::string id;
  };

  std::string Run(const FuzzedCall& call);
  std::string Create(const std::string& message, OwnerId owner);
  std::string Put(const std::string& message, Stream& stream, std::uint8_t cut);
  std::string EndPut(Stream& stream);
  std::string Get(const std::string& message, OwnerId owner);
  std::string Drop(const std::string& message, OwnerId owner);
  std::string Renew(const std::string& message, OwnerId owner);
  std::string List(const std::string& message, OwnerId owner);
  std::string GiveUpAll();

  // The code that a message of Put must get, as it stands, from a stream.
  absl::StatusCode ExpectedOfPut(const v1::PutRequest& request, const Stream& stream) const;
  void Cancel(Stream& stream);
  // Returns what a name in a message stands for: an id, or the name itself.
  std::string IdOf(const std::string& name) const;
  // The tensor that an owner knows by this id; if there is none, the code that says so.
  std::optional<std::size_t> Find(const std::string& id, OwnerId owner) const;
  absl::StatusCode CodeOf(const std::string& id, OwnerId owner) const;
  // The code of a request that names one tensor, or these.
  absl::StatusCode CodeOfIds(const std::string& id, std::span<const std::string> ids, OwnerId owner) const;
  // Replaces the names in a request by ids, and returns those of many.
  template <typename Request>
  std::vector<std::string> ResolveIds(Request& request) const {
    if (!request.id().empty()) request.set_id(IdOf(request.id()));
    for (std::string& id : *request.mutable_ids()) id = IdOf(id);
    return {request.ids().begin(), request.ids().end()};
  }
  std::size_t Charged(std::optional<OwnerId> owner) const;

  Metrics metrics_;
  std::unique_ptr<Backend> backend_;
  TensorStore store_;
  const ScanSchema schema_;
  std::string server_;  // in the ids that it makes
  CopySite site_;
  std::vector<Tensor> tensors_;
  std::array<Stream, 4> streams_;
  Counts counts_;
};

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_TENSOR_CHECK_H_
