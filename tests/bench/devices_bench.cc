// Measures what a server with several GPUs does with resident tensors.
//
//   devices_bench ADDRESS products SIDE     bf16 products of SIDE x SIDE whose results stay on the server
//   devices_bench ADDRESS queries CLIENTS   clients that search one resident matrix
//   devices_bench ADDRESS puts GIB          a client for each device; together they put so many GiB
//
// `products`: the operands lie together; on two devices, at the first request; at later ones. `queries`: the
// matrix is bf16, of 1 Mi x 128; each request has 16 vectors and wants the 10 nearest by inner product.
// Prints one line of JSON. Data is random. The second operand of `products` is put on device 1 if there is
// one.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "warpline/client.h"

namespace warpline::client {
namespace {

using Clock = std::chrono::steady_clock;
constexpr absl::Duration kTimeout = absl::Seconds(60);

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

template <typename T>
T Checked(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
  std::exit(1);
}

// Normal random numbers, rounded to bf16 toward zero.
std::vector<std::uint16_t> RandomMatrix(std::int64_t rows, std::int64_t columns) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> matrix(static_cast<std::size_t>(rows * columns));
  for (std::uint16_t& element : matrix) {
    const float value = normal(random);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    element = static_cast<std::uint16_t>(bits >> 16);
  }
  return matrix;
}

double SecondsOfProduct(Client& client, const Tensor& a, const Tensor& b) {
  const auto start = Clock::now();
  Checked(client.Gemm({.a = a, .b = b}, kTimeout, {.destination = {.keep = absl::Minutes(5)}}));
  return Since(start);
}

void Products(const std::string& address, std::int64_t side) {
  Client client(address, {});
  const int devices = Checked(client.GetInfo(kTimeout)).devices_size();
  const std::vector<std::uint16_t> matrix = RandomMatrix(side, side);
  const auto put = [&](int device) {
    return Checked(client.Put({.dtype = DType::kBF16, .shape = {side, side}, .data = matrix.data()}, kTimeout,
                              {.device = device}));
  };
  const Tensor a = put(0), near = put(0);
  std::vector<double> together, first, later;
  for (int i = 0; i < 50; ++i) SecondsOfProduct(client, a, near);
  constexpr int kFirst = 11, kLater = 40;
  for (int i = 0; i < kFirst; ++i) {
    const Tensor far = put(devices > 1 ? 1 : 0);
    // A connection that was used for a large transfer a moment ago is slow at first.
    for (int k = 0; k < kLater; ++k) together.push_back(SecondsOfProduct(client, a, near));
    first.push_back(SecondsOfProduct(client, a, far));
    for (int k = 0; k < kLater; ++k) later.push_back(SecondsOfProduct(client, a, far));
  }
  std::printf("{\"together\": %.7f, \"first\": %.7f, \"later\": %.7f}\n", Median(together), Median(first),
              Median(later));
}

void Queries(const std::string& address, int clients) {
  constexpr std::int64_t kRows = 1 << 20, kColumns = 128, kVectors = 16;
  const std::vector<std::uint16_t> matrix = RandomMatrix(kRows, kColumns);
  Client owner(address, {});
  const Tensor resident = Checked(
      owner.Put({.dtype = DType::kBF16, .shape = {kRows, kColumns}, .data = matrix.data()}, kTimeout));
  RunArgs search;
  v1::Step& product = *search.program.add_steps();
  product.set_name("scores");
  for (const char* input : {"vectors", "matrix"}) product.add_inputs(input);
  product.mutable_gemm()->set_trans_b(true);
  v1::Step& nearest = *search.program.add_steps();
  nearest.set_name("nearest");
  nearest.add_inputs("scores");
  nearest.mutable_topk()->set_k(10);
  search.program.add_outputs("nearest");
  std::atomic<std::int64_t> answered = 0;
  std::atomic<bool> ends = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i) {
    threads.emplace_back([&, i] {
      Client client(address, {});
      const std::vector<std::uint16_t>& all = matrix;
      RunArgs mine = search;
      mine.inputs = {
          {"vectors", ConstArray{.dtype = DType::kBF16,
                                 .shape = {kVectors, kColumns},
                                 .data = all.data() + static_cast<std::int64_t>(i) * kVectors * kColumns}},
          {"matrix", resident}};
      while (!ends) {
        Checked(client.Run(mine, kTimeout));
        ++answered;
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const std::int64_t before = answered;
  const auto start = Clock::now();
  std::this_thread::sleep_for(std::chrono::seconds(2));
  const double rate = static_cast<double>(answered - before) / Since(start);
  ends = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("{\"requests_per_second\": %.1f}\n", rate);
}

void Puts(const std::string& address, std::int64_t gibibytes) {
  constexpr std::int64_t kBytes = std::int64_t{1} << 30;
  std::vector<std::uint8_t> data(kBytes);
  std::mt19937_64 random(1);
  for (std::int64_t i = 0; i < kBytes; i += 8) {
    const std::uint64_t word = random();
    std::memcpy(data.data() + i, &word, sizeof(word));
  }
  const int devices = Checked(Client(address, {}).GetInfo(kTimeout)).devices_size();
  const std::int64_t each = std::max<std::int64_t>(1, gibibytes / devices);
  std::vector<std::thread> threads;
  const auto start = Clock::now();
  for (int device = 0; device < devices; ++device) {
    threads.emplace_back([&, device] {
      Client client(address, {});
      std::vector<Tensor> kept;
      for (std::int64_t i = 0; i < each; ++i) {
        kept.push_back(Checked(client.Put({.dtype = DType::kU8, .shape = {kBytes}, .data = data.data()},
                                          kTimeout, {.device = device})));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("{\"gigabytes_per_second\": %.3f}\n",
              static_cast<double>(each * devices * kBytes) / 1e9 / Since(start));
}

}  // namespace
}  // namespace warpline::client

int main(int argc, char** argv) {
  const std::string what = argc == 4 ? argv[2] : "";
  if (what == "products") {
    warpline::client::Products(argv[1], std::atoll(argv[3]));
  } else if (what == "queries") {
    warpline::client::Queries(argv[1], std::atoi(argv[3]));
  } else if (what == "puts") {
    warpline::client::Puts(argv[1], std::atoll(argv[3]));
  } else {
    std::fprintf(stderr, "usage: devices_bench ADDRESS products SIDE | queries CLIENTS | puts GIB\n");
    return 2;
  }
  return 0;
}
