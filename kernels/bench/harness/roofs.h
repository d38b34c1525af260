// The limits of the machine, measured in the same run as the results that are compared with them.
#ifndef WARPLINE_KERNELS_BENCH_HARNESS_ROOFS_H_
#define WARPLINE_KERNELS_BENCH_HARNESS_ROOFS_H_

#include <map>
#include <string>

#include "kernels/bench/harness/device.h"
#include "kernels/problem.h"

namespace warpline::bench {

class Roofs {
 public:
  // Measures the two of the memory.
  explicit Roofs(const Device& device);

  // Bytes a second of the fastest copy from device to device, read and written bytes both counted: by
  // cudaMemcpyAsync or by our kernel, of 256 MiB or 1 GiB, as neither is the faster one everywhere
  // (docs/benchmarks/2026-11-23-h200-ladder.md). Its name tells which it was.
  double copy() const { return copy_; }
  const std::string& copy_name() const { return copy_name_; }
  // Rate of reading 1 GiB with a kernel that does nothing else.
  double read() const { return read_; }
  // Operations a second of cuBLASLt's own choice for a square product of 8192 (f64: 4096), random normal
  // operands; 0 without the library or the memory. Measured when first asked for.
  double Gemm(DType dtype, Precision precision);
  // The Gemm rates measured so far, by type name.
  const std::map<std::string, double>& gemm() const { return gemm_; }

 private:
  const Device& device_;
  double copy_ = 0, read_ = 0;
  std::string copy_name_;
  std::map<std::string, double> gemm_;
};

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_HARNESS_ROOFS_H_
