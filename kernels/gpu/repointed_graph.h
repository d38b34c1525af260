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

// Launching a graph costs the host about as much as launching one kernel, however many kernels it has. But
// its nodes keep the arguments that they were captured with. So the work is captured a second time, with each
// base address moved by a different distance. If the arguments of the two captures differ by the distance of
// a base, they are an address relative to that base. If they differ in any other way, the work cannot be
// re-pointed. This needs no knowledge of the kernels, so it also works for those of libraries. Bytes between
// members of arguments may be uninitialised. A third capture, with other bytes on the stack, finds them.
class RepointedGraph {
 public:
  static constexpr std::size_t kMaxBases = 12;
  // From launch to launch, bases must keep their remainders modulo this number, because kernels are chosen by
  // alignment. Equal bases must stay equal, and different bases different.
  static constexpr std::uintptr_t kAlignment = 256;

  // Enqueues the work with these base addresses, on the stream that is given to Make.
  using EnqueueWork = absl::FunctionRef<absl::Status(std::span<std::byte* const> bases)>;
  // Captures the work on `stream`, which only the calling thread may use. UNIMPLEMENTED if the work cannot be
  // re-pointed, has more than kMaxBases bases, or the driver is too old (before 12.4).
  static absl::StatusOr<RepointedGraph> Make(std::span<std::byte* const> bases, EnqueueWork enqueue,
                                             cudaStream_t stream);
  RepointedGraph(RepointedGraph&&) = default;
  RepointedGraph& operator=(RepointedGraph&&) = default;

  // Returns whether the graph can run with these bases.
  bool Fits(std::span<std::byte* const> bases) const;
  // Launches the graph with bases for which Fits is true. The last launch must have ended.
  absl::Status Launch(std::span<std::byte* const> bases, cudaStream_t stream);

  std::size_t nodes() const { return nodes_; }

 private:
  // An 8-byte word of a node's arguments that is an address.
  struct Address {
    std::size_t word = 0;  // index in the node's arguments
    std::size_t base = 0;
    std::uintptr_t offset = 0;
  };
  struct KernelNode {
    cudaGraphNode_t node = nullptr;
    CUDA_KERNEL_NODE_PARAMS params = {};
    // Pointers to the arguments. If the kernel takes them as one block, they point to the block and its size,
    // as in CUDA_KERNEL_NODE_PARAMS::extra.
    std::vector<void*> arguments;
    std::vector<std::uint64_t> words;
    std::unique_ptr<std::size_t> block_bytes;  // null: the arguments are not a block
    std::vector<Address> addresses;
  };
  struct CopyNode {
    cudaGraphNode_t node = nullptr;
    cudaMemcpy3DParms params = {};
    std::vector<Address> addresses;  // word 0: the source, 1: the target
  };

  RepointedGraph() = default;
  // `over`: another capture with the bases of the first, but a different stack.
  absl::Status Compare(cudaGraph_t first, cudaGraph_t second, cudaGraph_t over,
                       std::span<std::byte* const> bases, std::span<const std::uintptr_t> distances);

  Graph graph_;  // owns the nodes
  GraphExec exec_;
  std::size_t nodes_ = 0;
  std::vector<KernelNode> kernels_;  // only kernels with addresses that change
  std::vector<CopyNode> copies_;
  std::vector<std::byte*> bases_;  // bases of the last launch
  bool is_pointed_ = true;         // true if all nodes have these bases
};

}  // namespace warpline::gpu

#endif  // WARPLINE_KERNELS_GPU_REPOINTED_GRAPH_H_
