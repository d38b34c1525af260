// The choices of kernels of one GPU: each is made once for a problem, the variant that a step names, and the
// alignment of its operands.
#ifndef WARPLINE_SERVER_DEVICE_KERNEL_CHOICES_H_
#define WARPLINE_SERVER_DEVICE_KERNEL_CHOICES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/hash/hash.h"
#include "kernels/cuda_choice.h"
#include "kernels/kept_plans.h"
#include "kernels/problem.h"
#include "server/observe/metrics.h"

namespace warpline {

// Everything that Choose depends on for one device.
template <typename ProblemT>
struct ChoiceKey {
  ProblemT problem;
  std::string variant;
  std::uint64_t addresses = 0;       // what counts of them
  std::int32_t multiprocessors = 0;  // a partition takes some away after the first choices were made

  friend bool operator==(const ChoiceKey&, const ChoiceKey&) = default;
};

template <typename H>
H HashProblem(H hash, const TransposeProblem& p) {
  return H::combine(std::move(hash), p.dtype, p.shape.rank, p.shape.dims, p.perm, p.row_stride);
}
template <typename H>
H HashProblem(H hash, const GemmProblem& p) {
  const GemmBatch& batch = p.batch;
  const auto count = static_cast<std::size_t>(batch.rank);
  hash = H::combine(std::move(hash), p.dtype, p.OutDType(), p.m, p.n, p.k, p.lda, p.ldb, p.ldc, p.trans_a,
                    p.trans_b, p.has_c, p.has_bias, p.activation, p.precision, batch.rank);
  for (const auto* axes : {batch.dims, batch.a, batch.b, batch.c}) {
    hash = H::combine_contiguous(std::move(hash), axes, count);
  }
  return hash;
}
template <typename H>
H HashProblem(H hash, const ReduceProblem& p) {
  return H::combine(std::move(hash), p.op, p.dtype, p.shape.rank, p.shape.dims, p.axes_mask, p.OutDType(),
                    p.row_stride, p.ddof);
}
template <typename H>
H HashProblem(H hash, const MapProblem& p) {
  hash = H::combine(std::move(hash), p.shape.rank, p.shape.dims, p.OutStrides(), p.inputs.size(),
                    p.nodes.size(), p.further);
  for (const MapInput& input : p.inputs) hash = H::combine(std::move(hash), input.dtype, input.strides);
  for (const MapNode& node : p.nodes) hash = H::combine(std::move(hash), node.op, node.dtype, node.operands);
  return hash;
}
template <typename H>
H HashProblem(H hash, const TakeProblem& p) {
  return H::combine(std::move(hash), p.dtype, p.index_dtype, p.shape.rank, p.shape.dims, p.x_strides,
                    p.index_strides, p.axis_size, p.axis_stride);
}
template <typename H>
H HashProblem(H hash, const PutProblem& p) {
  return H::combine(std::move(hash), p.dtype, p.index_dtype, p.shape.rank, p.shape.dims, p.axis,
                    p.index_shape.dims, p.index_strides, p.value_strides);
}
template <typename H>
H HashProblem(H hash, const ScanProblem& p) {
  return H::combine(std::move(hash), p.op, p.dtype, p.outer, p.count, p.inner, p.exclusive, p.reverse);
}
template <typename H>
H HashProblem(H hash, const SortProblem& p) {
  return H::combine(std::move(hash), p.dtype, p.rows, p.count, p.taken, p.descending, p.nan_first, p.values,
                    p.indices);
}
template <typename H>
H HashProblem(H hash, const SearchProblem& p) {
  return H::combine(std::move(hash), p.dtype, p.count, p.needles, p.right, p.has_sorter, p.sorter_dtype);
}
template <typename H>
H HashProblem(H hash, const CompressProblem& p) {
  return H::combine(std::move(hash), p.dtype, p.rows, p.width);
}
template <typename H, typename ProblemT>
H AbslHashValue(H hash, const ChoiceKey<ProblemT>& key) {
  return H::combine(HashProblem(std::move(hash), key.problem), key.variant, key.addresses,
                    key.multiprocessors);
}

// Thread-safe.
class KernelChoices {
 public:
  // A choice takes about 2 KiB; that of a map of 256 nodes takes some 12 KiB.
  explicit KernelChoices(std::size_t max_of_each_operation = 1024)
      : KernelChoices(max_of_each_operation, std::make_index_sequence<std::variant_size_v<Problem>>()) {}

  // Counts the choices that are made from now on.
  void CountIn(Counter made) { made_ = made; }

  // Returns what Choose returns; null if nothing serves.
  template <typename ProblemT>
  std::shared_ptr<const CudaChoice<ProblemT>> Get(const ProblemT& problem, std::string_view variant,
                                                  const DeviceTraits& traits, const Operands& operands) {
    return Of<ProblemT>().Get(KeyOf(problem, variant, traits, operands), [&] {
      CudaChoice<ProblemT> choice = Choose(problem, variant, traits, operands);
      if (choice.row == nullptr) return std::optional<CudaChoice<ProblemT>>();
      made_.Add();
      return std::optional(std::move(choice));
    });
  }

 private:
  template <std::size_t... I>
  KernelChoices(std::size_t max_of_each_operation, std::index_sequence<I...>)
      : kept_((static_cast<void>(I), max_of_each_operation)...) {}

  template <typename ProblemT>
  using Kept = KeptPlans<ChoiceKey<ProblemT>, CudaChoice<ProblemT>, absl::Hash<ChoiceKey<ProblemT>>>;

  template <typename ProblemT>
  static ChoiceKey<ProblemT> KeyOf(const ProblemT& problem, std::string_view variant,
                                   const DeviceTraits& traits, const Operands& operands) {
    return {problem, std::string(variant), AddressesOf(operands), traits.multiprocessors};
  }
  // The remainders by 16 of the result and of the operands that only maps have more of than others. Of the
  // others it counts whether there is a remainder.
  static std::uint64_t AddressesOf(const Operands& operands) {
    constexpr int kExact = 4;
    const auto remainder = [](const void* address) {
      return std::uint64_t{reinterpret_cast<std::uintptr_t>(address) % 16};
    };
    std::uint64_t addresses = remainder(operands.out);
    for (int i = 0; i < kExact; ++i) addresses = addresses << 4 | remainder(operands.in[i]);
    for (int i = kExact; i < kMaxMapInputs; ++i) {
      addresses = addresses << 1 | std::uint64_t{remainder(operands.in[i]) != 0};
    }
    // A C that lies where D does is refused by rows that put sums there first.
    const bool in_place = operands.out != nullptr && operands.in[2] == operands.out;
    return addresses << 1 | std::uint64_t{in_place};
  }
  template <typename ProblemT>
  Kept<ProblemT>& Of() {
    return std::get<Kept<ProblemT>>(kept_);
  }

  Counter made_;
  template <typename Variant>
  struct KeptOf;
  template <typename... Problems>
  struct KeptOf<std::variant<Problems...>> {
    using Tuple = std::tuple<Kept<Problems>...>;
  };
  KeptOf<Problem>::Tuple kept_;
};

}  // namespace warpline

#endif  // WARPLINE_SERVER_DEVICE_KERNEL_CHOICES_H_
