// A chain, gemm -> transpose -> row sums of bf16 matrices, as one program and as three requests.
//
// Usage: chain_bench ADDRESS SIDE ROUNDS [resident]. Prints the medians of alternating rounds as JSON. With
// `resident`, a program of five steps (gemm, add, transpose, sum, scale) on resident operands instead; its
// result, a vector, comes back inline.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <random>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/status_macros.h"
#include "warpline/client.h"

namespace warpline::client {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);

double Seconds(std::chrono::steady_clock::time_point since) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Operands {
  ConstArray a, b;
};

v1::Step& AddStep(RunArgs& args, const char* name, std::initializer_list<const char*> inputs) {
  v1::Step& step = *args.program.add_steps();
  step.set_name(name);
  for (const char* input : inputs) step.add_inputs(input);
  return step;
}

absl::StatusOr<std::uint16_t> OneProgram(Client& client, const Operands& x) {
  RunArgs args;
  args.inputs = {{"a", x.a}, {"b", x.b}};
  const auto add = [&](const char* name, std::initializer_list<const char*> inputs) -> v1::Step& {
    return AddStep(args, name, inputs);
  };
  add("product", {"a", "b"}).mutable_gemm();
  add("turned", {"product"}).mutable_transpose();
  v1::ReduceStep& sum = *add("sums", {"turned"}).mutable_reduce();
  sum.set_op(v1::REDUCE_OP_SUM);
  sum.add_axes(1);
  args.program.add_outputs("sums");
  ASSIGN_OR_RETURN(const RunResult result, client.Run(args, kTimeout));
  return static_cast<const std::uint16_t*>(result.outputs.front().second.data())[0];
}

absl::StatusOr<std::uint16_t> ThreeRequests(Client& client, const Operands& x) {
  ASSIGN_OR_RETURN(const Result product, client.Gemm({.a = x.a, .b = x.b}, kTimeout));
  ASSIGN_OR_RETURN(const Result turned, client.Transpose({.x = product.array.View()}, kTimeout));
  ASSIGN_OR_RETURN(const Result sums, client.Reduce({.x = turned.array.View(), .axes = {1}}, kTimeout));
  return static_cast<const std::uint16_t*>(sums.array.data())[0];
}

absl::StatusOr<std::uint16_t> FiveSteps(Client& client, const Tensor& a, const Tensor& b) {
  RunArgs args;
  args.inputs = {{"a", a}, {"b", b}};
  const auto add = [&](const char* name, std::initializer_list<const char*> inputs) -> v1::Step& {
    return AddStep(args, name, inputs);
  };
  add("product", {"a", "b"}).mutable_gemm();
  add("shifted", {"product", "a"}).mutable_add();
  add("turned", {"shifted"}).mutable_transpose();
  v1::ReduceStep& sum = *add("sums", {"turned"}).mutable_reduce();
  sum.set_op(v1::REDUCE_OP_SUM);
  sum.add_axes(1);
  add("scaled", {"sums"}).mutable_scale()->set_factor(0.5);
  args.program.add_outputs("scaled");
  ASSIGN_OR_RETURN(const RunResult result, client.Run(args, kTimeout));
  return static_cast<const std::uint16_t*>(result.outputs.front().second.data())[0];
}

int RunResident(Client& client, const Operands& x, int rounds) {
  const absl::StatusOr<Tensor> a = client.Put(x.a, kTimeout), b = client.Put(x.b, kTimeout);
  std::vector<double> seconds;
  for (int round = -rounds / 10 - 1; round < rounds; ++round) {  // the first warm up
    const auto start = std::chrono::steady_clock::now();
    const absl::StatusOr<std::uint16_t> result = !a.ok()   ? a.status()
                                                 : !b.ok() ? b.status()
                                                           : FiveSteps(client, *a, *b);
    if (!result.ok()) {
      std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
      return 1;
    }
    if (round >= 0) seconds.push_back(Seconds(start));
  }
  std::printf("{\"five_steps_seconds\": %.7f}\n", Median(seconds));
  return 0;
}

int Main(const char* address, std::int64_t side, int rounds, bool resident) {
  Client client(address, {});
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> a(static_cast<std::size_t>(side * side)), b(a.size());
  for (std::vector<std::uint16_t>* matrix : {&a, &b}) {
    for (std::uint16_t& element : *matrix) {
      const float value = normal(random);
      std::uint32_t bits = 0;
      std::memcpy(&bits, &value, sizeof(bits));
      element = static_cast<std::uint16_t>(bits >> 16);
    }
  }
  const Operands x{{.dtype = DType::kBF16, .shape = {side, side}, .data = a.data()},
                   {.dtype = DType::kBF16, .shape = {side, side}, .data = b.data()}};
  if (resident) return RunResident(client, x, rounds);
  std::vector<double> one, three;
  for (int round = -1; round < rounds; ++round) {  // the first warms up
    auto start = std::chrono::steady_clock::now();
    const absl::StatusOr<std::uint16_t> from_one = OneProgram(client, x);
    const double one_seconds = Seconds(start);
    start = std::chrono::steady_clock::now();
    const absl::StatusOr<std::uint16_t> from_three = ThreeRequests(client, x);
    const double three_seconds = Seconds(start);
    for (const auto* result : {&from_one, &from_three}) {
      if (result->ok()) continue;
      std::fprintf(stderr, "%s\n", result->status().ToString().c_str());
      return 1;
    }
    if (*from_one != *from_three) {
      std::fprintf(stderr, "the first sums differ: %04x, %04x\n", *from_one, *from_three);
      return 1;
    }
    if (round < 0) continue;
    one.push_back(one_seconds);
    three.push_back(three_seconds);
  }
  std::printf("{\"one_program_seconds\": %.6f, \"three_requests_seconds\": %.6f}\n", Median(one),
              Median(three));
  return 0;
}

}  // namespace
}  // namespace warpline::client

int main(int argc, char** argv) {
  const bool resident = argc == 5 && std::strcmp(argv[4], "resident") == 0;
  if (argc != 4 && !resident) {
    std::fprintf(stderr, "usage: chain_bench ADDRESS SIDE ROUNDS [resident]\n");
    return 2;
  }
  return warpline::client::Main(argv[1], std::atoll(argv[2]), std::atoi(argv[3]), resident);
}
