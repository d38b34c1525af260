// How large transposes and the paths that size asks for do, slot to slot on the lanes of device 0, without
// scheduler and gRPC. Ways that are compared take turns within one process; every figure is a median. Prints
// one table a question:
//
//   1. graph against blocks, alone, beside the time that PCIe takes for the same bytes both ways at once;
//   2. sizes of blocks, and parts of the first and the last, for two of the shapes;
//   3. where slots, graph and blocks cross, alone and with four lanes at once;
//   4. 64 jobs of 64 MiB through the scheduler over 4 lanes;
//   5. device memory that graphs take.
//
//   large_bench [QUESTION ...]     default: all
//
// Exits with 1 if a result is wrong.
#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "tests/bench/engine.h"
#include "tests/bench/way.h"

namespace warpline::bench {
namespace {

constexpr std::size_t kArenaBytes = 576 * kMiB;  // of a daemon with its default options

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Check(cudaError_t error) {
  if (error != cudaSuccess) Fail(absl::InternalError(cudaGetErrorName(error)));
}

double Since(absl::Time start) { return absl::ToDoubleSeconds(absl::Now() - start); }

Program Transpose(std::int64_t rows, std::int64_t cols, DType dtype = DType::kF32) {
  const TransposeProblem problem{dtype, {rows, cols}, {1, 0}};
  const std::size_t bytes = static_cast<std::size_t>(rows * cols) * SizeOf(dtype);
  Program program = OneStep(problem, problem.shape, problem.OutputShape());
  for (TensorSpec& tensor : program.tensors) tensor = {dtype, tensor.shape, bytes};
  return program;
}

Program Sum(std::int64_t side, unsigned axis) {
  const ReduceProblem sum{
      .op = ReduceOp::kSum, .dtype = DType::kF32, .shape = {side, side}, .axes_mask = 1u << axis};
  return OneStep(sum, sum.shape, {side});
}

constexpr PathLimits kGraphs{
    .mapped_bytes = 0, .mapped_bytes_alone = 0, .mapped_scattered_bytes = 0, .cut_bytes = kNever};
constexpr PathLimits kBlocksOnly{
    .mapped_bytes = 0, .mapped_bytes_alone = 0, .mapped_scattered_bytes = 0, .cut_bytes = 0};
constexpr PathLimits kMappedOnly{.mapped_bytes = kNever,
                                 .mapped_bytes_alone = kNever,
                                 .mapped_scattered_bytes = kNever,
                                 .cut_bytes = kNever};

// Both directions of PCIe at once with contiguous copies, and each alone.
class Ceiling {
 public:
  explicit Ceiling(const Slots& slots) : slots_(slots) {
    Check(cudaMalloc(&in_, kSlotBytes));
    Check(cudaMalloc(&out_, kSlotBytes));
    for (cudaStream_t* stream : {&h2d_, &d2h_})
      Check(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
  }
  ~Ceiling() {
    cudaStreamDestroy(h2d_);
    cudaStreamDestroy(d2h_);
    cudaFree(in_);
    cudaFree(out_);
  }

  double Seconds(std::size_t bytes, bool in, bool out) {
    const absl::Time start = absl::Now();
    if (in) {
      Check(cudaMemcpyAsync(in_, slots_.In(bytes, 0).data(), bytes, cudaMemcpyHostToDevice, h2d_));
    }
    if (out) {
      Check(cudaMemcpyAsync(slots_.Out(bytes, 0).data(), out_, bytes, cudaMemcpyDeviceToHost, d2h_));
    }
    Check(cudaStreamSynchronize(h2d_));
    Check(cudaStreamSynchronize(d2h_));
    return Since(start);
  }

 private:
  const Slots& slots_;
  void* in_ = nullptr;
  void* out_ = nullptr;
  cudaStream_t h2d_ = nullptr, d2h_ = nullptr;
};

int wrong = 0;

// Checks the transpose of 4-byte elements.
void CheckTransposed(const std::string& what, std::int64_t rows, std::int64_t cols, const Slots& slots) {
  const auto bytes = static_cast<std::size_t>(rows * cols) * 4;
  const auto* in = reinterpret_cast<const std::uint32_t*>(slots.In(bytes, 0).data());
  const auto* out = reinterpret_cast<const std::uint32_t*>(slots.Out(bytes, 0).data());
  constexpr std::int64_t kTile = 64;
  for (std::int64_t r0 = 0; r0 < rows; r0 += kTile) {
    for (std::int64_t c = 0; c < cols; ++c) {
      for (std::int64_t r = r0; r < std::min(rows, r0 + kTile); ++r) {
        if (out[c * rows + r] == in[r * cols + c]) continue;
        std::printf("WRONG: %s at row %lld, column %lld\n", what.c_str(), static_cast<long long>(r),
                    static_cast<long long>(c));
        ++wrong;
        return;
      }
    }
  }
}

struct Matrix {
  std::int64_t rows, cols;
  std::size_t bytes() const { return static_cast<std::size_t>(rows * cols) * 4; }
  std::string name() const { return std::to_string(rows) + "x" + std::to_string(cols); }
};

// Medians of the ways, in their order, taking turns; each checked once.
std::vector<double> Medians(
    const std::vector<std::unique_ptr<Way>>& ways, const Matrix& matrix, const Slots& slots, int rounds,
    const std::function<void()>& beside = [] {}) {
  const Case each(Transpose(matrix.rows, matrix.cols));
  std::vector<std::vector<double>> seconds(ways.size());
  for (const auto& way : ways) {
    std::memset(slots.Out(matrix.bytes(), 0).data(), 0xcd, matrix.bytes());
    way->Run(each, slots);
    CheckTransposed(way->name() + " " + matrix.name(), matrix.rows, matrix.cols, slots);
    way->Run(each, slots);
  }
  for (int round = 0; round < rounds; ++round) {
    beside();
    for (std::size_t i = 0; i < ways.size(); ++i) seconds[i].push_back(ways[i]->Run(each, slots));
  }
  std::vector<double> medians;
  for (auto& each_way : seconds) medians.push_back(Median(each_way));
  return medians;
}

int RoundsFor(std::size_t bytes) { return bytes >= 64 * kMiB ? 25 : 101; }

void GraphAgainstBlocks() {
  std::vector<std::unique_ptr<Way>> ways;
  ways.push_back(std::make_unique<Way>("graph", kGraphs, CutOptions(), 1, kArenaBytes));
  ways.push_back(std::make_unique<Way>("blocks", kBlocksOnly, CutOptions(), 1, kArenaBytes));
  ways.push_back(std::make_unique<Way>("timed", kBlocksOnly, CutOptions(), 1, kArenaBytes, 1));
  const Slots slots(ways[0]->backend());
  Ceiling ceiling(slots);
  std::printf(
      "\n1. Alone, f32, ms. PCIe: the same bytes both ways at once; timed: blocks with events around all\n");
  std::printf(
      "matrix            MiB    H2D    D2H  | PCIe  graph  blocks  timed | blocks/PCIe  blocks GB/s a way\n");
  for (const Matrix& matrix : {Matrix{1024, 1024}, Matrix{2048, 2048}, Matrix{4096, 4096}, Matrix{8192, 8192},
                               Matrix{16384, 4096}, Matrix{8191, 8193}, Matrix{1000003, 16}}) {
    std::vector<double> both, in, out;
    const std::vector<double> medians = Medians(ways, matrix, slots, RoundsFor(matrix.bytes()), [&] {
      both.push_back(ceiling.Seconds(matrix.bytes(), true, true));
      in.push_back(ceiling.Seconds(matrix.bytes(), true, false));
      out.push_back(ceiling.Seconds(matrix.bytes(), false, true));
    });
    std::printf("%-12s %8.1f %6.3f %6.3f |%6.3f %6.3f %6.3f %6.3f | %8.3f %12.1f\n", matrix.name().c_str(),
                static_cast<double>(matrix.bytes()) / kMiB, Median(in) * 1e3, Median(out) * 1e3,
                Median(both) * 1e3, medians[0] * 1e3, medians[1] * 1e3, medians[2] * 1e3,
                medians[1] / Median(both), static_cast<double>(matrix.bytes()) / medians[1] / 1e9);
  }
}

void BlockSizes() {
  struct Setting {
    std::size_t piece_mib, in_row, out_row;
    int min_pieces, taper;
  };
  const Setting settings[] = {
      {8, 4096, 8192, 4, 1},   {8, 4096, 8192, 4, 2},   {8, 4096, 8192, 4, 4},  {8, 4096, 8192, 4, 8},
      {8, 8192, 4096, 4, 4},   {8, 8192, 8192, 4, 4},   {4, 4096, 4096, 4, 1},  {4, 4096, 4096, 4, 2},
      {4, 4096, 4096, 4, 4},   {16, 8192, 8192, 4, 1},  {16, 8192, 8192, 4, 4}, {16, 8192, 8192, 4, 8},
      {16, 4096, 16384, 4, 4}, {32, 16384, 8192, 4, 8}, {8, 4096, 8192, 2, 4},  {8, 4096, 8192, 8, 1},
      {8, 4096, 8192, 8, 2},   {8, 4096, 8192, 8, 4},   {8, 4096, 8192, 16, 2}};
  std::vector<std::unique_ptr<Way>> ways;
  for (const Setting& setting : settings) {
    const CutOptions cutting{.piece_bytes = setting.piece_mib * kMiB,
                             .min_pieces = setting.min_pieces,
                             .in_row_bytes = setting.in_row,
                             .out_row_bytes = setting.out_row,
                             .taper = setting.taper};
    ways.push_back(std::make_unique<Way>("setting", kBlocksOnly, cutting, 1, kArenaBytes));
  }
  const Slots slots(ways[0]->backend());
  const Matrix matrices[] = {{1024, 1024}, {2048, 2048}, {4096, 4096}, {8192, 8192}, {8191, 8193}};
  std::vector<std::vector<double>> medians;
  for (const Matrix& matrix : matrices) {
    medians.push_back(Medians(ways, matrix, slots, matrix.bytes() >= 64 * kMiB ? 15 : 61));
  }
  std::printf("\n2. Blocks, alone, f32, ms\npiece MiB  row in  row out  pieces>=  taper |");
  for (const Matrix& matrix : matrices) std::printf(" %9s", matrix.name().c_str());
  std::printf("\n");
  for (std::size_t i = 0; i < ways.size(); ++i) {
    const Setting& setting = settings[i];
    std::printf("%9zu %7zu %8zu %9d %6d |", setting.piece_mib, setting.in_row, setting.out_row,
                setting.min_pieces, setting.taper);
    for (const auto& of_matrix : medians) std::printf(" %9.3f", of_matrix[i] * 1e3);
    std::printf("\n");
  }
}

void Crossings() {
  constexpr std::size_t kSmallArena = 24 * kMiB;
  std::vector<std::unique_ptr<Way>> ways;
  ways.push_back(std::make_unique<Way>("mapped", kMappedOnly, CutOptions(), kLanes, kSmallArena));
  ways.push_back(std::make_unique<Way>("graph", kGraphs, CutOptions(), kLanes, kSmallArena));
  ways.push_back(std::make_unique<Way>("blocks", kBlocksOnly, CutOptions(), kLanes, kSmallArena));
  ways.push_back(std::make_unique<Way>("choice", PathLimits(), CutOptions(), kLanes, kSmallArena));
  const Slots slots(ways[0]->backend());
  std::vector<std::pair<std::string, Program>> cases;
  for (std::int64_t side : {128, 181, 256, 362, 512, 724, 1024}) {
    const std::string size = std::to_string(side) + "^2";
    cases.emplace_back("transpose f32 " + size, Transpose(side, side));
  }
  cases.emplace_back("transpose f32 255x257", Transpose(255, 257));
  cases.emplace_back("transpose f32 511x513", Transpose(511, 513));
  cases.emplace_back("transpose f32 16384x8", Transpose(16384, 8));
  cases.emplace_back("transpose f32 20000x3", Transpose(20000, 3));
  cases.emplace_back("transpose u8 512^2", Transpose(512, 512, DType::kU8));
  cases.emplace_back("transpose u8 1024^2", Transpose(1024, 1024, DType::kU8));
  cases.emplace_back("transpose u8 1023x1025", Transpose(1023, 1025, DType::kU8));
  cases.emplace_back("transpose f64 256^2", Transpose(256, 256, DType::kF64));
  for (std::int64_t side : {256, 512, 724}) {
    for (unsigned axis : {0u, 1u}) {
      cases.emplace_back("sum f32 " + std::to_string(side) + "^2 axis " + std::to_string(axis),
                         Sum(side, axis));
    }
  }
  std::printf(
      "\n3. us alone, and GB/s both ways together with four lanes at once. choice: the default options\n");
  std::printf(
      "case                        MiB both | mapped  graph blocks choice | mapped graph blocks choice\n");
  for (const auto& [name, program] : cases) {
    const Case each(program);
    std::vector<std::vector<double>> alone(ways.size()), rates(ways.size());
    for (int round = 0; round < 210; ++round) {
      for (std::size_t i = 0; i < ways.size(); ++i) {
        const double seconds = ways[i]->Run(each, slots);
        if (round >= 10) alone[i].push_back(seconds);
      }
    }
    const double bytes = static_cast<double>(each.plan.input_bytes + each.plan.output_bytes);
    for (int round = 0; round < 5; ++round) {
      for (std::size_t i = 0; i < ways.size(); ++i) {
        rates[i].push_back(ways[i]->BytesPerSecond(each, slots, bytes > 4e6 ? 60 : 200) / 1e9);
      }
    }
    std::printf("%-27s %8.3f |", name.c_str(), bytes / kMiB);
    for (const auto& of_way : alone) std::printf(" %6.1f", Median(of_way) * 1e6);
    std::printf(" |");
    for (const auto& of_way : rates) std::printf(" %6.1f", Median(of_way));
    std::printf("\n");
  }
}

void ManyJobs() {
  const EngineSize size{.lanes = kLanes, .device_bytes = kLanes * 192 * kMiB, .staging_bytes = 1024 * kMiB};
  const Program program = Transpose(4096, 4096);
  std::printf("\n4. 64 jobs of 64 MiB through the scheduler over 4 lanes, GB/s both ways together\n");
  for (const bool cuts : {false, true}) {
    CudaBackendOptions options{.timing_sample = 0};
    if (!cuts) options.paths = kGraphs;
    Engine engine(options, size);
    engine.Throughput(program, 1, 2 * kLanes);
    std::vector<double> rates;
    for (int round = 0; round < 7; ++round) {
      rates.push_back(engine.Throughput(program, 1, 64) * 2 * static_cast<double>(program.tensors[0].bytes) /
                      1e9);
    }
    std::printf("%-24s median %.1f, least %.1f, most %.1f\n", cuts ? "default options" : "never cut",
                Median(rates), *std::min_element(rates.begin(), rates.end()),
                *std::max_element(rates.begin(), rates.end()));
  }
}

// Device memory that a graph of a copy, a kernel and a copy takes, for the estimate of CudaGraph.
void GraphMemory() {
  constexpr int kSignatures = 4000;
  CudaBackendOptions options{.devices = {0},
                             .lane_bytes = 24 * kMiB,
                             .graph_cache_entries = kSignatures,
                             .graph_cache_bytes = kNever,
                             .paths = kGraphs,
                             .timing_sample = 0};
  auto backend = CreateCudaBackend(options);
  if (!backend.ok()) Fail(backend.status());
  auto lane = (*backend)->CreateLane(0);
  auto memory = (*backend)->AllocateHost(kMiB);
  if (!lane.ok() || !memory.ok()) Fail(absl::InternalError("no lane, or no memory"));
  std::size_t before = 0, after = 0, total = 0;
  const auto run = [&](int rows) {
    const Case each(Transpose(rows, 17));
    std::atomic<bool> done = false;
    (*lane)->Launch({&each.program, &each.plan, each.signature, each.bindings,
                     memory->bytes().subspan(0, each.plan.input_bytes),
                     memory->bytes().subspan(kMiB / 2, each.plan.output_bytes)},
                    [&done](const LaunchReport& report) {
                      if (!report.status.ok()) Fail(report.status);
                      done = true;
                    });
    while (!done) {
    }
  };
  for (int i = 1; i <= 10; ++i) run(i);
  Check(cudaMemGetInfo(&before, &total));
  for (int i = 11; i <= kSignatures; ++i) run(i);
  Check(cudaMemGetInfo(&after, &total));
  const double bytes = static_cast<double>(before) - static_cast<double>(after);
  std::printf("\n5. Graphs of 3 nodes: %.0f bytes of device memory each, %.0f a node\n",
              bytes / (kSignatures - 10), bytes / (kSignatures - 10) / 3);
}

int Main(int argc, char** argv) {
  const auto chosen = [&](const char* question) {
    if (argc == 1) return true;
    return std::any_of(argv + 1, argv + argc,
                       [&](const char* each) { return std::strcmp(each, question) == 0; });
  };
  const std::pair<const char*, void (*)()> questions[] = {
      {"1", GraphAgainstBlocks}, {"2", BlockSizes}, {"3", Crossings}, {"4", ManyJobs}, {"5", GraphMemory}};
  for (const auto& [question, answer] : questions) {
    if (!chosen(question)) continue;
    answer();
    std::fflush(stdout);
  }
  if (wrong > 0) std::printf("%d results were WRONG\n", wrong);
  return wrong > 0 ? 1 : 0;
}

}  // namespace
}  // namespace warpline::bench

int main(int argc, char** argv) { return warpline::bench::Main(argc, argv); }
