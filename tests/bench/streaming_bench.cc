// One call of large arrays in a C++ client: in messages, and in ranges over several connections.
//
//   streaming_bench ADDRESS [MOST_MIB [CA.pem]]
//
// Transposes of 1 MiB up to so many (256), and then also a sum of 1 GiB. Prints a line for each size and way:
// the median of the wall time in ms, over rounds in which the ways take turns.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "warpline/client.h"

namespace {

using warpline::DType;
using warpline::client::Client;
using warpline::client::ClientOptions;

constexpr int kRounds = 7;
constexpr std::size_t kMiB = std::size_t{1} << 20;

struct Way {
  std::string name;
  ClientOptions options;
};

double MillisecondsOf(Client& client, const std::vector<float>& x, std::int64_t rows, bool reduces) {
  const warpline::client::ConstArray operand{DType::kF32, {rows, 4096}, 0, x.data()};
  const auto begin = std::chrono::steady_clock::now();
  const auto result = reduces ? client.Reduce({.x = operand}, absl::Seconds(60))
                              : client.Transpose({.x = operand}, absl::Seconds(60));
  const auto end = std::chrono::steady_clock::now();
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
    return -1;
  }
  return std::chrono::duration<double, std::milli>(end - begin).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  std::vector<Way> ways = {{"messages", {.stream_from_bytes = 0}}};
  for (const int channels : {0, 1, 2, 4, 8, 16}) {
    ways.push_back({channels == 0 ? "usual" : std::to_string(channels) + " channels",
                    {.stream_from_bytes = 1, .channels = channels}});
  }
  std::vector<std::unique_ptr<Client>> clients;
  for (Way& way : ways) {
    if (argc > 3) way.options.channel.tls.ca = argv[3];
    clients.push_back(std::make_unique<Client>(argv[1], way.options));
  }
  const auto measure = [&](std::size_t bytes, bool reduces) {
    std::vector<float> x(bytes / sizeof(float));
    std::mt19937 random(1);
    for (float& each : x) each = static_cast<float>(random() % 1000) / 8;
    std::vector<std::vector<double>> taken(ways.size());
    for (int round = 0; round < kRounds + 1; ++round) {
      for (std::size_t i = 0; i < ways.size(); ++i) {
        const double time =
            MillisecondsOf(*clients[i], x, static_cast<std::int64_t>(bytes / sizeof(float) / 4096), reduces);
        if (round > 0) taken[i].push_back(time);
      }
    }
    std::printf("%s of %zu MiB:", reduces ? "sum" : "transpose", bytes / kMiB);
    for (std::size_t i = 0; i < ways.size(); ++i) {
      std::sort(taken[i].begin(), taken[i].end());
      std::printf("  %s %.1f", ways[i].name.c_str(), taken[i][taken[i].size() / 2]);
    }
    std::printf("\n");
    std::fflush(stdout);
  };
  const std::size_t most = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 256;
  for (std::size_t mib = 1; mib <= most; mib *= 2) measure(mib * kMiB, false);
  if (argc <= 2) measure(1024 * kMiB, true);
  return 0;
}
