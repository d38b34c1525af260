// A graph of work whose addresses change from launch to launch.
#ifndef WARPLINE_KERNELS_GPU_REPOINTED_GRAPH_H_
#define WARPLINE_KERNELS_GPU_REPOINTED_GRAPH_H_

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/gpu/handle.h"

namespace warpline::gpu {

// Launching a graph costs the host about as much as launching one kernel, however many it has. Its nodes keep
// the arguments that they were captured with. So the work is captured again, with each base address moved by
// a distance of its own. Where the arguments of the two captures differ by the distance of a
// base, there is an address that counts from that base. Where they differ in any other way, the work cannot
// be re-pointed. This needs to know nothing of the kernels, and serves those of libraries, too. Between
// members of arguments there may be bytes that nobody has written; a third capture, over another stack, tells
// which.
class RepointedGraph {
 public:
  static constexpr std::size_t kMaxBases = 12;
  // Bases keep their remainders by this number from launch to launch, since kernels are chosen by alignment.
  // Those that are equal stay equal, and no others become so.
  static constexpr std::uintptr_t kAlignment = 256;

  // Enqueues the work on the stream that is given to Make, with these base addresses.
  using EnqueueWork = absl::FunctionRef<absl::Status(std::span<std::byte* const> bases)>;
  // Captures the work on `stream`, which the calling thread alone uses. UNIMPLEMENTED if the work cannot be
  // re-pointed, has more than kMaxBases bases, or the driver is too old (before 12.4).
  static absl::StatusOr<RepointedGraph> Make(std::span<std::byte* const> bases, EnqueueWork enqueue,
                                             cudaStream_t stream);
  RepointedGraph(RepointedGraph&&) = default;
  RepointedGraph& operator=(RepointedGraph&&) = default;

  // Returns whether the graph can run with these bases.
  bool Fits(std::span<std::byte* const> bases) const;
  // Launches the graph with bases that it fits. The last launch must have ended.
  absl::Status Launch(std::span<std::byte* const> bases, cudaStream_t stream);

  std::size_t nodes() const { return nodes_; }

 private:
  // An 8-byte word of the arguments of a node that is an address.
  struct Address {
    std::size_t word = 0;  // of the node's arguments
    std::size_t base = 0;
    std::uintptr_t offset = 0;
  };
  struct KernelNode {
    cudaGraphNode_t node = nullptr;
    CUDA_KERNEL_NODE_PARAMS params = {};
    // Point at the arguments, or, if the kernel takes them as one block, at that and its size, as
    // CUDA_KERNEL_NODE_PARAMS::extra has it.
    std::vector<void*> arguments;
    std::vector<std::uint64_t> words;
    std::unique_ptr<std::size_t> block_bytes;  // null: they are no block
    std::vector<Address> addresses;
  };
  struct CopyNode {
    cudaGraphNode_t node = nullptr;
    cudaMemcpy3DParms params = {};
    std::vector<Address> addresses;  // word 0: the source, 1: the target
  };

  RepointedGraph() = default;
  // `over`: another capture of the first.
  absl::Status Compare(cudaGraph_t first, cudaGraph_t second, cudaGraph_t over,
                       std::span<std::byte* const> bases, std::span<const std::uintptr_t> distances);

  Graph graph_;  // the nodes belong to it
  GraphExec exec_;
  std::size_t nodes_ = 0;
  std::vector<KernelNode> kernels_;  // those with addresses that change
  std::vector<CopyNode> copies_;
  std::vector<std::byte*> bases_;  // of the last launch
  bool is_pointed_ = true;         // all nodes have these bases
};

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_REPOINTED_GRAPH_H_
