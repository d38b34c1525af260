// What the machine allows, measured in the same run as what is compared with it.
#ifndef WARPLINE_KERNELS_BENCH_ROOFS_H_
#define WARPLINE_KERNELS_BENCH_ROOFS_H_

#include <map>
#include <string>

#include "kernels/bench/device.h"
#include "kernels/problem.h"

namespace warpline::bench {

class Roofs {
 public:
  // Measures the two of the memory.
  explicit Roofs(const Device& device);

  // Bytes a second of cudaMemcpyAsync from device to device over 1 GiB, read and written bytes both counted;
  // and of reading 1 GiB by a kernel that does nothing else.
  double copy() const { return copy_; }
  double read() const { return read_; }
  // Operations a second of cuBLASLt's own choice for a square product of 8192 (f64: 4096), random normal
  // operands; 0 without the library. Measured when first asked for.
  double Gemm(DType dtype, Precision precision);
  // Those measured so far, by type name.
  const std::map<std::string, double>& gemm() const { return gemm_; }

 private:
  const Device& device_;
  double copy_ = 0, read_ = 0;
  std::map<std::string, double> gemm_;
};

}  // namespace warpline::bench

#endif  // WARPLINE_KERNELS_BENCH_ROOFS_H_
