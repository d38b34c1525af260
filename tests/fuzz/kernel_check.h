// One request of KernelService, from its bytes to its response, as the server handles it but without calls
// and queues, and everything that must hold on the way.
#ifndef WARPLINE_TESTS_FUZZ_KERNEL_CHECK_H_
#define WARPLINE_TESTS_FUZZ_KERNEL_CHECK_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "absl/status/statusor.h"
#include "server/device/backend.h"
#include "server/memory/copy_payload.h"
#include "server/memory/staging_pool.h"
#include "server/observe/metrics.h"
#include "server/rpc/codec/codec.h"
#include "server/rpc/plan_compiler.h"
#include "server/schedule/admission.h"
#include "server/store/region_store.h"
#include "server/store/tensor_store.h"

namespace warpline::testing {

// A server in small: the cpu backend, resident tensors of several types under the names "t0" to "t9", one
// that is not complete ("half") and one that was dropped ("late"), and three regions of 4 KiB ("r0" to "r2"),
// of whose calls number 1 was withdrawn from "r2". In requests these names stand for the ids, which differ
// from run to run. Not thread-safe.
//
// Checked of each request:
// - It is refused with a code that the API documents, or it has a plan without a flaw (plan_text.h).
// - With other payloads, scalars of the same classes, and other places in regions it has the same key, and
//   the same plan; and so has every earlier request of the same key. With scalars of other classes, tensors
//   of other shapes, or payloads of other lengths it has another key, or the same plan.
// - If it is cheap it is run on a lane, and step by step on memory of exactly the sizes of its tensors. Both
//   give the same bits, and nothing of a region changes but the slices that the request names for results.
// - The response can be parsed and has these bits.
class KernelCheck {
 public:
  KernelCheck();
  ~KernelCheck();

  // Empty if all of this holds, else what does not. The message is cut into slices of these sizes in turn.
  std::string Check(RequestKind kind, std::string_view message, std::span<const std::size_t> slice_sizes);

  // How far the messages have got so far, to see that a test tests something.
  struct Counts {
    int messages = 0, planned = 0, run = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  struct Request;
  void AddTensor(const std::string& name, const TensorSpec& spec);
  void AddRegion(const std::string& name);
  // The names in the message become ids, and what they stand for is looked up, as KernelService does.
  void Resolve(Request& request);
  // The same key and the same plan with all that a plan must not depend on changed.
  std::string CheckTwin(const Request& request, const absl::StatusOr<PlanPtr>& plan);
  // Another key, or the same plan all the same, with something of what it does depend on changed.
  std::string CheckStrangers(const Request& request, const absl::StatusOr<PlanPtr>& plan);
  std::string CheckEarlier(const Request& request, const absl::StatusOr<PlanPtr>& plan);
  std::string Run(const Request& request, const Plan& plan);
  std::string CompareResponse(const Request& request, const Plan& plan, std::span<const std::byte> output,
                              const std::vector<std::string>& headers);

  Metrics metrics_;
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Lane> lane_;
  Admission admission_;
  std::vector<std::byte> staging_;
  StagingPool pool_;
  TensorStore tensors_;
  RegionStore regions_;
  PlanCompiler compiler_;
  const std::vector<Codec> codecs_;
  CopySite site_;
  std::unordered_map<std::string, std::string> ids_;  // by name
  std::vector<Buffer> region_memory_;
  // Maps a request's key to the hash of what the request has become.
  std::unordered_map<std::string, std::size_t> earlier_;
  Counts counts_;
};

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_FUZZ_KERNEL_CHECK_H_
