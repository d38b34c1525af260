// The flags of `warpline bench`.
#ifndef WARPLINE_CLIENT_BENCH_FLAGS_H_
#define WARPLINE_CLIENT_BENCH_FLAGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/flags.h"
#include "kernels/dtype.h"
#include "kernels/shape.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::client {

enum class BenchOp { kTranspose, kGemm, kReduce, kEcho };

struct BenchFlags {
  CommonFlags common;
  BenchOp op = BenchOp::kTranspose;
  DType dtype = DType::kF32;
  std::string sizes = "32x32";  // as the user gave them
  Shape shape;                  // for gemm: m, n, k
  v1::ReduceOp reduce_op = v1::REDUCE_OP_SUM;
  std::vector<int> axes;
  int channels = 1;
  int concurrency = 0;         // at least 1 once completed
  std::optional<double> rate;  // requests per second; not set: closed loop
  bool poisson = true;
  absl::Duration warmup = absl::Seconds(1);
  absl::Duration duration = absl::Seconds(5);
  std::int64_t requests = 0;  // 0: as many as fit into `duration`
  // Operands and results lie in shared memory instead of the messages.
  bool shared = false;
  // Names of operands that are already on the server: "x", or "a" and "b" for gemm.
  std::vector<std::string> resident;
  // Results stay on the server, and are dropped after each request.
  bool keep = false;

  // This object must outlive the parse.
  void AddTo(CLI::App& app, CommonFlags& common);
  // Returns the parsed flags, with derived values filled in. Every error is a usage error.
  absl::StatusOr<BenchFlags> Completed(const CommonFlags& common) const;

  // Returns the maximum number of bytes in the result of one response. InvalidArgument for a shape that is
  // too large.
  absl::StatusOr<std::size_t> ResultBytes() const;

  bool IsResident(std::string_view operand) const;
  // Returns "inline" or "shm".
  std::string Transport() const { return shared ? "shm" : "inline"; }
  // Returns a title such as "gemm f32[32,32,32], shm, b resident, result kept, 1 channel, 1 in flight".
  std::string Title() const;
};

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_BENCH_FLAGS_H_
