// Copies or slots: at which size is a program better off with copies around its kernels than with kernels
// that read and write the staging slots over PCIe? Through the scheduler, without gRPC, one job after the
// other and 32 at a time over 8 lanes. Prints one row a problem and size.
#include <algorithm>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/bench/engine.h"

namespace warpline::bench {
namespace {

// Median of one job after the other, in microseconds.
double Alone(Engine& engine, const Program& program) {
  const PlanPtr plan = std::make_shared<const Plan>(MakePlan(program));
  std::vector<double> seconds;
  for (int i = 0; i < 600; ++i) {
    absl::Notification done;
    const absl::Time start = absl::Now();
    engine.Submit(plan, [&] { done.Notify(); });
    while (!done.HasBeenNotified()) {
    }
    if (i >= 100) seconds.push_back(absl::ToDoubleSeconds(absl::Now() - start));
  }
  std::nth_element(seconds.begin(), seconds.begin() + seconds.size() / 2, seconds.end());
  return seconds[seconds.size() / 2] * 1e6;
}

int Main() {
  std::vector<std::pair<std::string, Program>> cases;
  for (std::int64_t side : {32, 64, 90, 128, 181, 256, 512}) {
    const Shape square = {side, side};
    const std::string size = std::to_string(side) + "x" + std::to_string(side);
    cases.emplace_back("transpose " + size,
                       OneStep(TransposeProblem{DType::kF32, square, {1, 0}}, square, square));
    for (unsigned axis : {0u, 1u}) {
      const ReduceProblem sum{
          .op = ReduceOp::kSum, .dtype = DType::kF32, .shape = square, .axes_mask = 1u << axis};
      cases.emplace_back("sum axis " + std::to_string(axis) + " " + size, OneStep(sum, square, {side}));
    }
  }
  struct Figures {
    double alone_us, per_second;
  };
  std::vector<std::vector<Figures>> figures(cases.size());
  for (const std::size_t most : {std::size_t{0}, std::size_t{1} << 30}) {
    Engine engine({.paths = {.mapped_bytes = most,
                             .mapped_bytes_alone = most,
                             .mapped_scattered_bytes = most,
                             .cut_bytes = std::size_t{1} << 40},
                   .timing_sample = 0});
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Program& program = cases[i].second;
      figures[i].push_back({Alone(engine, program), engine.Throughput(program, 100)});
    }
  }
  std::printf("problem (f32)              copies us  slots us  copies jobs/s  slots jobs/s\n");
  for (std::size_t i = 0; i < cases.size(); ++i) {
    std::printf("%-26s %9.1f %9.1f %14.0f %13.0f\n", cases[i].first.c_str(), figures[i][0].alone_us,
                figures[i][1].alone_us, figures[i][0].per_second, figures[i][1].per_second);
  }
  return 0;
}

}  // namespace
}  // namespace warpline::bench

int main() { return warpline::bench::Main(); }
