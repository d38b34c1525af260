#include "kernels/gpu/repointed_graph.h"

#include <cudaTypedefs.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "absl/strings/str_cat.h"
#include "kernels/gpu/capture.h"
#include "kernels/gpu/driver_function.h"
#include "kernels/gpu/status.h"
#include "kernels/status_macros.h"

namespace warpline::gpu {
namespace {

constexpr char kDoing[] = "re-pointing a graph";

absl::Status ToStatus(CUresult result) {
  // The runtime and the driver use the same error numbers.
  return gpu::ToStatus(static_cast<cudaError_t>(result), kDoing);
}

struct Driver {
  PFN_cuGraphKernelNodeGetParams_v12000 get_params =
      FindDriverFunction<PFN_cuGraphKernelNodeGetParams_v12000>("cuGraphKernelNodeGetParams", 12000);
  PFN_cuGraphExecKernelNodeSetParams_v12000 set_params =
      FindDriverFunction<PFN_cuGraphExecKernelNodeSetParams_v12000>("cuGraphExecKernelNodeSetParams", 12000);
  PFN_cuFuncGetParamInfo_v12040 function_info =
      FindDriverFunction<PFN_cuFuncGetParamInfo_v12040>("cuFuncGetParamInfo", 12040);
  PFN_cuKernelGetParamInfo_v12040 kernel_info =
      FindDriverFunction<PFN_cuKernelGetParamInfo_v12040>("cuKernelGetParamInfo", 12040);

  bool is_complete() const {
    return get_params != nullptr && set_params != nullptr && function_info != nullptr &&
           kernel_info != nullptr;
  }
};

const Driver& TheDriver() {
  static const Driver driver;
  return driver;
}

// Returns the arguments of a kernel, in bytes. They are one block if the launcher passed one.
std::optional<std::vector<std::span<const std::byte>>> ArgumentsOf(const CUDA_KERNEL_NODE_PARAMS& params) {
  std::vector<std::span<const std::byte>> arguments;
  if (params.kernelParams == nullptr && params.extra != nullptr) {
    const std::byte* block = nullptr;
    std::size_t bytes = 0;
    for (void** option = params.extra; *option != CU_LAUNCH_PARAM_END; option += 2) {
      if (*option == CU_LAUNCH_PARAM_BUFFER_POINTER) block = static_cast<const std::byte*>(option[1]);
      if (*option == CU_LAUNCH_PARAM_BUFFER_SIZE) bytes = *static_cast<const std::size_t*>(option[1]);
    }
    if (block == nullptr) return std::nullopt;
    arguments.emplace_back(block, bytes);
    return arguments;
  }
  for (std::size_t i = 0;; ++i) {
    std::size_t offset = 0, size = 0;
    const CUresult result = params.func != nullptr ? TheDriver().function_info(params.func, i, &offset, &size)
                                                   : TheDriver().kernel_info(params.kern, i, &offset, &size);
    if (result != CUDA_SUCCESS) return arguments;
    if (params.kernelParams == nullptr) return std::nullopt;
    arguments.emplace_back(static_cast<const std::byte*>(params.kernelParams[i]), size);
  }
}

bool HaveSameShape(const CUDA_KERNEL_NODE_PARAMS& a, const CUDA_KERNEL_NODE_PARAMS& b) {
  return a.func == b.func && a.kern == b.kern && a.gridDimX == b.gridDimX && a.gridDimY == b.gridDimY &&
         a.gridDimZ == b.gridDimZ && a.blockDimX == b.blockDimX && a.blockDimY == b.blockDimY &&
         a.blockDimZ == b.blockDimZ && a.sharedMemBytes == b.sharedMemBytes;
}

// The distances by which bases are moved. A base is moved by four TiB, to where there is no memory: CUDA
// refuses a copy that begins in memory that it knows and ends outside of it. Bases in the upper half of all
// addresses are moved down. Each distance is a MiB larger than the one before. So the difference of two
// distances is never a third one, and moved bases have the same alignment as the bases.
std::vector<std::uintptr_t> Distances(std::span<std::byte* const> bases) {
  constexpr std::uintptr_t kUpperHalf = std::uintptr_t{1} << 46, kFar = std::uintptr_t{1} << 42;
  std::vector<std::uintptr_t> distances;
  for (const std::byte* base : bases) {
    const std::uintptr_t distance =
        kFar + RepointedGraph::kAlignment + (std::uintptr_t{distances.size()} << 20);
    distances.push_back(reinterpret_cast<std::uintptr_t>(base) < kUpperHalf ? distance : -distance);
  }
  return distances;
}

absl::Status CannotRepoint(std::string_view why) {
  return absl::UnimplementedError(absl::StrCat("the work cannot be re-pointed: ", std::string(why)));
}

absl::StatusOr<std::vector<cudaGraphNode_t>> NodesOf(cudaGraph_t graph) {
  std::size_t count = 0;
  RETURN_IF_ERROR(gpu::ToStatus(cudaGraphGetNodes(graph, nullptr, &count), kDoing));
  std::vector<cudaGraphNode_t> nodes(count);
  RETURN_IF_ERROR(gpu::ToStatus(cudaGraphGetNodes(graph, nodes.data(), &count), kDoing));
  return nodes;
}

// Returns the base whose distance equals the difference of the words; nothing if there is none.
std::optional<std::size_t> BaseOf(std::uint64_t first, std::uint64_t second,
                                  std::span<const std::uintptr_t> distances) {
  const auto found = std::find(distances.begin(), distances.end(), second - first);
  if (found == distances.end()) return std::nullopt;
  return static_cast<std::size_t>(found - distances.begin());
}

std::uintptr_t ToNumber(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// Fills the stack below its caller.
[[gnu::noinline]] void FillStack(int value) {
  std::array<std::byte, std::size_t{32} << 10> below;
  std::memset(below.data(), value, below.size());
  asm volatile("" : : "r"(below.data()) : "memory");
}

// Captures the work that `enqueue` makes with these bases. Before that, fills the stack with bytes of value
// `stack`.
absl::StatusOr<Graph> CaptureWork(std::span<std::byte* const> bases, RepointedGraph::EnqueueWork enqueue,
                                  int stack, cudaStream_t stream) {
  ASSIGN_OR_RETURN(Capture capture, Capture::Begin(stream));
  FillStack(stack);
  RETURN_IF_ERROR(enqueue(bases));
  return std::move(capture).End();
}

// Returns whether `a` and `b` differ only in bytes in which `a` and `over` differ too.
bool DifferByUnwrittenBytes(std::uint64_t a, std::uint64_t b, std::uint64_t over) {
  for (int shift = 0; shift < 64; shift += 8) {
    const auto byte = [shift](std::uint64_t word) { return word >> shift & 0xff; };
    if (byte(a) != byte(b) && byte(a) == byte(over)) return false;
  }
  return true;
}

// Arguments as words. Each argument begins with a new word; the rest of its last word is 0.
struct Words {
  std::vector<std::uint64_t> words;
  std::vector<std::size_t> begins;

  explicit Words(std::span<const std::span<const std::byte>> arguments) {
    for (const std::span<const std::byte> argument : arguments) {
      begins.push_back(words.size());
      words.resize(words.size() + (argument.size() + 7) / 8);
      std::memcpy(words.data() + begins.back(), argument.data(), argument.size());
    }
  }
};

}  // namespace

absl::Status RepointedGraph::Compare(cudaGraph_t first, cudaGraph_t second, cudaGraph_t over,
                                     std::span<std::byte* const> bases,
                                     std::span<const std::uintptr_t> distances) {
  ASSIGN_OR_RETURN(const std::vector<cudaGraphNode_t> nodes, NodesOf(first));
  ASSIGN_OR_RETURN(const std::vector<cudaGraphNode_t> others, NodesOf(second));
  ASSIGN_OR_RETURN(const std::vector<cudaGraphNode_t> again, NodesOf(over));
  if (nodes.size() != others.size() || nodes.size() != again.size()) {
    return CannotRepoint("its nodes depend on addresses");
  }
  nodes_ = nodes.size();
  // Records the difference between two words. Returns false if it is not the distance of a base.
  const auto compare = [&](std::size_t word, std::uint64_t a, std::uint64_t b, std::vector<Address>& to) {
    if (a == b) return true;
    const std::optional<std::size_t> base = BaseOf(a, b, distances);
    if (base.has_value()) to.push_back({word, *base, a - ToNumber(bases[*base])});
    return base.has_value();
  };
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    cudaGraphNodeType type, other_type;
    RETURN_IF_ERROR(gpu::ToStatus(cudaGraphNodeGetType(nodes[i], &type), kDoing));
    RETURN_IF_ERROR(gpu::ToStatus(cudaGraphNodeGetType(others[i], &other_type), kDoing));
    if (type != other_type) return CannotRepoint("its nodes depend on addresses");
    if (type == cudaGraphNodeTypeKernel) {
      KernelNode kernel;
      CUDA_KERNEL_NODE_PARAMS other, same;
      kernel.node = nodes[i];
      RETURN_IF_ERROR(ToStatus(TheDriver().get_params(nodes[i], &kernel.params)));
      RETURN_IF_ERROR(ToStatus(TheDriver().get_params(others[i], &other)));
      RETURN_IF_ERROR(ToStatus(TheDriver().get_params(again[i], &same)));
      if (!HaveSameShape(kernel.params, other) || !HaveSameShape(kernel.params, same)) {
        return CannotRepoint(absl::StrCat("kernel ", i, " depends on addresses"));
      }
      const auto arguments = ArgumentsOf(kernel.params), of_other = ArgumentsOf(other),
                 of_same = ArgumentsOf(same);
      if (!arguments.has_value() || !of_other.has_value() || !of_same.has_value()) {
        return CannotRepoint(absl::StrCat("the arguments of kernel ", i, " cannot be read"));
      }
      Words a(*arguments);
      const Words b(*of_other), c(*of_same);
      if (b.words.size() != a.words.size() || c.words.size() != a.words.size()) {
        return CannotRepoint(absl::StrCat("the arguments of kernel ", i, " depend on addresses"));
      }
      for (std::size_t word = 0; word < a.words.size(); ++word) {
        if (!compare(word, a.words[word], b.words[word], kernel.addresses) &&
            !DifferByUnwrittenBytes(a.words[word], b.words[word], c.words[word])) {
          return CannotRepoint(absl::StrCat("word ", word, " of the arguments of kernel ", i,
                                            " depends on addresses and is none"));
        }
      }
      if (kernel.addresses.empty()) continue;
      const bool is_block = kernel.params.kernelParams == nullptr;
      kernel.words = std::move(a.words);
      if (is_block) {
        kernel.block_bytes = std::make_unique<std::size_t>(arguments->front().size());
        kernel.arguments = {CU_LAUNCH_PARAM_BUFFER_POINTER, kernel.words.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                            kernel.block_bytes.get(), CU_LAUNCH_PARAM_END};
      } else {
        for (const std::size_t begin : a.begins) kernel.arguments.push_back(kernel.words.data() + begin);
      }
      kernel.params.kernelParams = is_block ? nullptr : kernel.arguments.data();
      kernel.params.extra = is_block ? kernel.arguments.data() : nullptr;
      kernels_.push_back(std::move(kernel));
    } else if (type == cudaGraphNodeTypeMemcpy) {
      CopyNode copy;
      cudaMemcpy3DParms other;
      copy.node = nodes[i];
      RETURN_IF_ERROR(gpu::ToStatus(cudaGraphMemcpyNodeGetParams(nodes[i], &copy.params), kDoing));
      RETURN_IF_ERROR(gpu::ToStatus(cudaGraphMemcpyNodeGetParams(others[i], &other), kDoing));
      const auto &from = copy.params.srcPtr, &to = copy.params.dstPtr;
      if (!compare(0, ToNumber(from.ptr), ToNumber(other.srcPtr.ptr), copy.addresses) ||
          !compare(1, ToNumber(to.ptr), ToNumber(other.dstPtr.ptr), copy.addresses)) {
        return CannotRepoint("a copy depends on addresses");
      }
      if (!copy.addresses.empty()) copies_.push_back(std::move(copy));
    } else if (type == cudaGraphNodeTypeMemset) {
      cudaMemsetParams a, b;
      RETURN_IF_ERROR(gpu::ToStatus(cudaGraphMemsetNodeGetParams(nodes[i], &a), kDoing));
      RETURN_IF_ERROR(gpu::ToStatus(cudaGraphMemsetNodeGetParams(others[i], &b), kDoing));
      if (a.dst != b.dst) return CannotRepoint("memory is set whose address changes");
    } else if (type != cudaGraphNodeTypeEmpty) {
      return CannotRepoint("it is more than kernels and copies");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<RepointedGraph> RepointedGraph::Make(std::span<std::byte* const> bases, EnqueueWork enqueue,
                                                    cudaStream_t stream) {
  if (!TheDriver().is_complete()) return CannotRepoint("the driver is older than 12.4");
  if (bases.size() > kMaxBases) return CannotRepoint("it has too many tensors with memory of their own");
  const std::vector<std::uintptr_t> distances = Distances(bases);
  std::vector<std::byte*> moved(bases.begin(), bases.end());
  for (std::size_t i = 0; i < moved.size(); ++i) {
    // There is no memory at these addresses. The capture with them is only compared, and never runs.
    moved[i] = reinterpret_cast<std::byte*>(ToNumber(bases[i]) + distances[i]);
  }
  RepointedGraph result;
  constexpr int kStack = 0, kOtherStack = 0xff;
  ASSIGN_OR_RETURN(result.graph_, CaptureWork(bases, enqueue, kStack, stream));
  ASSIGN_OR_RETURN(const Graph second, CaptureWork(moved, enqueue, kStack, stream));
  ASSIGN_OR_RETURN(const Graph over, CaptureWork(bases, enqueue, kOtherStack, stream));
  RETURN_IF_ERROR(result.Compare(result.graph_.get(), second.get(), over.get(), bases, distances));
  ASSIGN_OR_RETURN(result.exec_, Instantiate(result.graph_));
  RETURN_IF_ERROR(gpu::ToStatus(cudaGraphUpload(result.exec_.get(), stream), kDoing));
  result.bases_.assign(bases.begin(), bases.end());
  return result;
}

bool RepointedGraph::Fits(std::span<std::byte* const> bases) const {
  if (bases.size() != bases_.size()) return false;
  for (std::size_t i = 0; i < bases.size(); ++i) {
    if ((ToNumber(bases[i]) ^ ToNumber(bases_[i])) % kAlignment != 0) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if ((bases[i] == bases[j]) != (bases_[i] == bases_[j])) return false;
    }
  }
  return true;
}

absl::Status RepointedGraph::Launch(std::span<std::byte* const> bases, cudaStream_t stream) {
  // After an error some nodes may have different bases from the others.
  const bool all = !std::exchange(is_pointed_, false);
  const auto has_moved = [&](const std::vector<Address>& addresses) {
    return all || std::any_of(addresses.begin(), addresses.end(), [&](const Address& address) {
             return bases[address.base] != bases_[address.base];
           });
  };
  for (KernelNode& kernel : kernels_) {
    if (!has_moved(kernel.addresses)) continue;
    for (const Address& address : kernel.addresses) {
      kernel.words[address.word] = ToNumber(bases[address.base]) + address.offset;
    }
    RETURN_IF_ERROR(ToStatus(TheDriver().set_params(exec_.get(), kernel.node, &kernel.params)));
  }
  for (CopyNode& copy : copies_) {
    if (!has_moved(copy.addresses)) continue;
    for (const Address& address : copy.addresses) {
      (address.word == 0 ? copy.params.srcPtr.ptr : copy.params.dstPtr.ptr) =
          reinterpret_cast<void*>(ToNumber(bases[address.base]) + address.offset);
    }
    RETURN_IF_ERROR(
        gpu::ToStatus(cudaGraphExecMemcpyNodeSetParams(exec_.get(), copy.node, &copy.params), kDoing));
  }
  std::copy(bases.begin(), bases.end(), bases_.begin());
  is_pointed_ = true;
  return gpu::ToStatus(cudaGraphLaunch(exec_.get(), stream), "launching a graph");
}

}  // namespace warpline::gpu
