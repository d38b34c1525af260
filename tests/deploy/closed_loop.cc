// Clients of our C++ library that make one call after the other until the standard input ends: four with
// small requests, one that sends and receives 4 MiB, one with products that take about a second.
//
// Usage: closed_loop TARGET RETRIES. Prints a line of "KIND CODE CALLS" for each kind of call and each code.
// A result that is wrong counts as DATA_LOSS.
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "kernels/status_macros.h"
#include "warpline/client.h"

namespace warpline::client {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);
// The plainest loop takes a second where the others compute too.
constexpr std::int64_t kSlowSide = 700;

class Loops {
 public:
  Loops(const std::string& target, int max_retries) : client_(target, {.max_retries = max_retries}) {}

  void Run() {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([this] { Loop("small", [this] { return Transpose(8); }); });
    threads.emplace_back([this] { Loop("upload", [this] { return Transpose(1024); }); });
    threads.emplace_back([this] { Loop("slow", [this] { return Product(); }); });
    char byte = 0;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    stopping_ = true;
    for (std::thread& thread : threads) thread.join();
    for (const auto& [call, count] : counts_) {
      std::printf("%s %s %d\n", call.first.c_str(), call.second.c_str(), count);
    }
  }

 private:
  template <typename Call>
  void Loop(const std::string& kind, const Call& call) {
    while (!stopping_) {
      const absl::Status status = call();
      if (!status.ok()) std::fprintf(stderr, "%s: %s\n", kind.c_str(), status.ToString().c_str());
      const std::lock_guard lock(mutex_);
      ++counts_[{kind, absl::StatusCodeToString(status.code())}];
    }
  }

  absl::Status Transpose(std::int64_t side) {
    std::vector<float> values(static_cast<std::size_t>(side * side));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
    const ConstArray x{.dtype = DType::kF32, .shape = {side, side}, .data = values.data()};
    ASSIGN_OR_RETURN(const Result result, client_.Transpose({.x = x}, kTimeout));
    const auto* y = static_cast<const float*>(result.array.data());
    for (std::int64_t row = 0; row < side; ++row) {
      for (std::int64_t column = 0; column < side; ++column) {
        if (y[column * side + row] != values[static_cast<std::size_t>(row * side + column)]) {
          return absl::DataLossError("a wrong result");
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status Product() {
    const std::vector<float> ones(static_cast<std::size_t>(kSlowSide * kSlowSide), 1.0f);
    const ConstArray a{.dtype = DType::kF32, .shape = {kSlowSide, kSlowSide}, .data = ones.data()};
    ASSIGN_OR_RETURN(const Result result, client_.Gemm({.a = a, .b = a, .variant = "reference"}, kTimeout));
    const float first = *static_cast<const float*>(result.array.data());
    return first == static_cast<float>(kSlowSide) ? absl::OkStatus() : absl::DataLossError("a wrong result");
  }

  Client client_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, int> counts_;
};

}  // namespace
}  // namespace warpline::client

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  warpline::client::Loops(argv[1], std::atoi(argv[2])).Run();
}
