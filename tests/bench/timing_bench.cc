// Measures what timing costs by default: small jobs through two engines of one process, one that times and
// one that does not. The engines take turns, so that both see the same state of the machine. gRPC is left
// out: its own noise is larger than what is to be measured. Two equal engines differ by a few per cent,
// depending on where their memory and threads happen to be. So there are many pairs of engines, also made in
// turns.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "tests/bench/engine.h"

namespace warpline::bench {
namespace {

// Median over rounds of how many per cent slower the second engine is.
double SlowerBy(Engine& off, Engine& on, const Program& program) {
  std::vector<double> slower;
  constexpr int kRounds = 24, kWarmUp = 4;
  for (int i = 0; i < kRounds + kWarmUp; ++i) {
    double per_second[2];
    for (int k : {i % 2, 1 - i % 2}) per_second[k] = (k == 0 ? off : on).Throughput(program, 50);
    if (i >= kWarmUp) slower.push_back(100 * (1 - per_second[1] / per_second[0]));
  }
  std::nth_element(slower.begin(), slower.begin() + kRounds / 2, slower.end());
  return slower[kRounds / 2];
}

void Compare(const char* what, const Program& program, int sample) {
  std::vector<double> slower;
  constexpr int kPairs = 24;
  for (int i = 0; i < kPairs; ++i) {
    std::unique_ptr<Engine> engines[2];
    for (int k : {i % 2, 1 - i % 2}) {
      engines[k] = std::make_unique<Engine>(CudaBackendOptions{.timing_sample = k == 0 ? 0 : sample});
    }
    slower.push_back(SlowerBy(*engines[0], *engines[1], program));
  }
  double mean = 0, square = 0;
  for (double value : slower) mean += value / kPairs;
  for (double value : slower) square += (value - mean) * (value - mean) / (kPairs - 1);
  std::printf("%s, one job in %d timed: %.2f %% slower, standard error %.2f (%d pairs of engines)\n", what,
              sample, mean, std::sqrt(square / kPairs), kPairs);
}

int Main() {
  const auto transpose = [](std::int64_t side) {
    return OneStep(TransposeProblem{DType::kF32, {side, side}, {1, 0}}, {side, side}, {side, side});
  };
  for (const int sample : {0, 16, CudaBackendOptions().timing_sample}) {  // 0: how far off two alike are
    Compare("32x32 f32 transpose, on its slots", transpose(32), sample);
    Compare("200x200 f32 transpose, as a graph", transpose(200), sample);
  }
  return 0;
}

}  // namespace
}  // namespace warpline::bench

int main() { return warpline::bench::Main(); }
