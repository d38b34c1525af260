// What timing costs, as it is by default: small jobs through two engines of one process, one that times and
// one that does not, in turns, so that both see the same state of the machine. Without gRPC, whose own noise
// is larger than what is to be measured.
#include <cmath>
#include <vector>

#include "tests/bench/engine.h"

namespace warpline::bench {
namespace {

void Compare(const char* what, const Program& program) {
  Engine off({.timing_sample = 0}), on({});
  std::vector<double> slower;  // in per cent
  constexpr int kPairs = 200, kRounds = 50;
  for (int i = 0; i < kPairs + 4; ++i) {
    double per_second[2];
    for (int k : {i % 2, 1 - i % 2}) per_second[k] = (k == 0 ? off : on).Throughput(program, kRounds);
    if (i >= 4) slower.push_back(100 * (1 - per_second[1] / per_second[0]));  // the first ones warm up
  }
  double mean = 0, square = 0;
  for (double value : slower) mean += value / kPairs;
  for (double value : slower) square += (value - mean) * (value - mean) / (kPairs - 1);
  std::printf("%s: %.2f %% slower with timing, standard error %.2f (%d pairs of %d jobs)\n", what, mean,
              std::sqrt(square / kPairs), kPairs, kRounds * 32);
}

int Main() {
  const auto transpose = [](std::int64_t side) {
    return OneStep(TransposeProblem{DType::kF32, {side, side}, {1, 0}}, {side, side}, {side, side});
  };
  Compare("32x32 f32 transpose, on its slots", transpose(32));
  Compare("200x200 f32 transpose, as a graph", transpose(200));
  return 0;
}

}  // namespace
}  // namespace warpline::bench

int main() { return warpline::bench::Main(); }
