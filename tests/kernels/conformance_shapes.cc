// Every operation, variant and dtype over the awkward shapes, with ordinary data.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>
#include <utility>

#include "tests/kernels/conformance.h"
#include "tests/testing/index_reference.h"
#include "tests/testing/map_reference.h"
#include "tests/testing/order_reference.h"
#include "tests/testing/random_tensor.h"
#include "tests/testing/reference.h"
#include "tests/testing/shapes.h"

namespace warpline::testing {
namespace {

// One variant for one dtype; an empty name is the backend's choice.
struct Subject {
  Backend* backend;
  std::string variant;
  bool reproducible;
  bool may_refuse = false;  // a problem that it suits
};

std::vector<Bytes> Operands(const TransposeProblem& p, std::uint64_t seed) {
  return {RandomBytes(StorageElements(p.shape, p.row_stride) * SizeOf(p.dtype), seed)};
}
std::vector<Bytes> Operands(const GemmProblem& p, std::uint64_t seed) { return RandomGemmOperands(p, seed); }
std::vector<Bytes> Operands(const ReduceProblem& p, std::uint64_t seed) {
  return {RandomTensor(p.dtype, StorageElements(p.shape, p.row_stride), seed)};
}
std::vector<Bytes> Operands(const MapProblem& p, std::uint64_t seed) {
  std::vector<Bytes> operands;
  for (std::size_t i = 0; i < p.inputs.size(); ++i) operands.push_back(MapOperand(p, i, seed));
  return operands;
}

std::vector<Bytes> Operands(const TakeProblem& p, std::uint64_t seed) { return IndexOperands(p, seed); }
std::vector<Bytes> Operands(const PutProblem& p, std::uint64_t seed) { return IndexOperands(p, seed); }
std::vector<Bytes> Operands(const CompressProblem& p, std::uint64_t seed) { return IndexOperands(p, seed); }
std::vector<Bytes> Operands(const ScanProblem& p, std::uint64_t seed) { return OrderOperands(p, seed); }
std::vector<Bytes> Operands(const SortProblem& p, std::uint64_t seed) { return OrderOperands(p, seed); }
std::vector<Bytes> Operands(const SearchProblem& p, std::uint64_t seed) { return OrderOperands(p, seed); }

// Small fractions, exact in every type; now and then the values that kernels have short cuts for.
StepScalars Scalars(std::uint64_t seed, bool has_c) {
  const float alpha = has_c && seed % 6 == 0 ? 0.0f : seed % 4 == 0 ? 1.0f : 1.25f;
  const float beta = !has_c || seed % 3 == 2 ? 0.0f : seed % 3 == 0 ? 1.0f : -0.5f;
  return {.alpha_f32 = alpha,
          .beta_f32 = beta,
          .alpha_f64 = alpha,
          .beta_f64 = beta,
          .alpha_i64 = alpha == 1.25f ? -3 : static_cast<std::int64_t>(alpha),
          .beta_i64 = static_cast<std::int64_t>(2 * beta)};
}

// One problem in so many: for compute-sanitizer, which takes a hundred times as long.
std::uint64_t Every() {
  const char* every = std::getenv("WARPLINE_CONFORMANCE_EVERY");
  return every == nullptr ? 1 : std::max<std::uint64_t>(1, std::strtoull(every, nullptr, 10));
}

class ShapeTest : public ::testing::Test {
 public:
  ShapeTest(Subject subject, std::function<std::vector<Problem>()> problems)
      : subject_(std::move(subject)), problems_(std::move(problems)) {}

  void TestBody() override {
    Harness harness(*subject_.backend);
    std::uint64_t seed = 0;
    int supported = 0;
    for (const Problem& problem : problems_()) {
      if (++seed % Every() != 0) continue;
      if (!subject_.backend->CheckVariant(problem, subject_.variant).ok()) continue;
      ++supported;
      const std::vector<Bytes> operands =
          std::visit([&](const auto& p) { return Operands(p, seed); }, problem);
      const bool repeat = subject_.reproducible && seed % 4 == 0;
      const auto* gemm = std::get_if<GemmProblem>(&problem);
      const auto* map = std::get_if<MapProblem>(&problem);
      const std::vector<StepScalars> scalars =
          map != nullptr ? MapScalars(*map, seed)
                         : std::vector{Scalars(seed, gemm != nullptr && gemm->has_c)};
      const std::string error = Check(harness, problem, subject_.variant, operands, scalars, repeat);
      if (subject_.may_refuse && error.find("cannot run this problem after all") != std::string::npos)
        continue;
      if (!error.empty()) ADD_FAILURE() << error;
    }
    if (supported == 0) GTEST_SKIP() << "supports none of the " << seed << " problems";
    RecordProperty("problems", supported);
  }

 private:
  const Subject subject_;
  const std::function<std::vector<Problem>()> problems_;
};

std::vector<Problem> MapProblems(DType dtype) {
  std::vector<Problem> all;
  const auto append = [&](const std::vector<MapProblem>& maps) {
    all.insert(all.end(), maps.begin(), maps.end());
  };
  append(AwkwardMaps(dtype));
  if (!IsReal(dtype)) return all;
  for (const PairOp op : kAllPairOps) append(AwkwardPairs(op, dtype));
  return all;
}

bool WithConfigurations() { return std::getenv("WARPLINE_CONFORMANCE_CONFIGURATIONS") != nullptr; }

class SkippedTest : public ::testing::Test {
 public:
  void TestBody() override { GTEST_SKIP() << "no such backend in this build or on this machine"; }
};

// A kernel that no problem reaches is tested by nothing, however green the rest is.
class ReachedTest : public ::testing::Test {
 public:
  explicit ReachedTest(bool reached) : reached_(reached) {}
  void TestBody() override {
    EXPECT_TRUE(reached_) << "no problem of tests/testing/shapes.h suits this variant on this device";
  }

 private:
  const bool reached_;
};

class ListedTest : public ::testing::Test {
 public:
  ListedTest(Backend& backend, Op op) : backend_(backend), op_(op) {}
  void TestBody() override {
    const auto variants = backend_.Variants();
    EXPECT_TRUE(std::any_of(variants.begin(), variants.end(),
                            [this](const VariantInfo& variant) { return variant.op == op_; }));
  }

 private:
  Backend& backend_;
  const Op op_;
};

template <typename ProblemT>
std::vector<Problem> ToProblems(const std::vector<ProblemT>& problems) {
  return {problems.begin(), problems.end()};
}

// The problems of operations that have one list of them.
std::vector<Problem> PlainProblems(Op op, DType dtype) {
  switch (op) {
    case Op::kTake:
      return ToProblems(AwkwardTakes(dtype));
    case Op::kPut:
      return ToProblems(AwkwardPuts(dtype));
    case Op::kCompress:
      return ToProblems(AwkwardCompressions(dtype));
    case Op::kScan:
      return ToProblems(AwkwardScans(dtype));
    case Op::kSort:
      return ToProblems(AwkwardSorts(dtype));
    case Op::kSearch:
      return ToProblems(AwkwardSearches(dtype));
    default:
      return MapProblems(dtype);
  }
}

void Register(std::string_view backend_name, const std::string& op, const Subject& subject, DType dtype,
              std::function<std::vector<Problem>()> problems) {
  const std::string suite = std::string(backend_name) + "/" + op;
  std::string test = (subject.variant.empty() ? "choice" : subject.variant) + "/" + std::string(Name(dtype));
  std::replace(test.begin(), test.end(), ':', '_');  // filters of gtest end there
  ::testing::RegisterTest(suite.c_str(), test.c_str(), nullptr, nullptr, __FILE__, __LINE__,
                          [=]() -> ::testing::Test* { return new ShapeTest(subject, problems); });
}

bool SuitsAny(const Subject& subject, const std::vector<Problem>& problems) {
  return std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) {
    return subject.backend->CheckVariant(problem, subject.variant).ok();
  });
}

// Sizes that take long to check: for the backend's choice, and for variants that no smaller ones suit.
bool MeetsLongOnes(std::string_view backend_name, const Subject& subject, ReduceOp op, DType dtype,
                   const std::vector<Problem>& problems) {
  if (backend_name != "cuda") return false;  // the CPU's variants know no such sizes
  return subject.variant.empty() ||
         (!SuitsAny(subject, ToProblems(AwkwardReductions(op, dtype))) && SuitsAny(subject, problems));
}

// Returns whether a problem of the tests suits the subject.
bool IsReached(std::string_view backend_name, Op op, const Subject& subject, DType dtype) {
  switch (op) {
    case Op::kTranspose:
      return SuitsAny(subject, ToProblems(AwkwardTransposes(dtype)));
    case Op::kGemm:
      return SuitsAny(subject, ToProblems(AwkwardGemms(dtype)));
    case Op::kReduce:
      return std::any_of(kAllReduceOps.begin(), kAllReduceOps.end(), [&](ReduceOp reduce_op) {
        const auto meets = [&](bool applies, const auto& make) {
          return applies &&
                 MeetsLongOnes(backend_name, subject, reduce_op, dtype, ToProblems(make(reduce_op, dtype)));
        };
        return SuitsAny(subject, ToProblems(AwkwardReductions(reduce_op, dtype))) ||
               meets(MeetsLongRows(reduce_op, dtype), LongOddRows) ||
               meets(MeetsFewRows(reduce_op, dtype), FewLongRows);
      });
    default:
      return SuitsAny(subject, PlainProblems(op, dtype));
  }
  return false;
}

void RegisterOp(std::string_view backend_name, Op op, const Subject& subject, DType dtype) {
  switch (op) {
    case Op::kTranspose:
      if (dtype == DType::kF32 || dtype == DType::kF64) {  // the sizes that padded_vectorized takes
        Register(backend_name, "transpose_small", subject, dtype,
                 [=] { return ToProblems(SmallMatrices(dtype)); });
      }
      return Register(backend_name, "transpose", subject, dtype,
                      [=] { return ToProblems(AwkwardTransposes(dtype)); });
    case Op::kGemm:
      return Register(backend_name, "gemm", subject, dtype, [=] { return ToProblems(AwkwardGemms(dtype)); });
    case Op::kReduce:
      for (ReduceOp reduce_op : kAllReduceOps) {
        const std::string name(Name(reduce_op));
        if (SuitsAny(subject, ToProblems(AwkwardReductions(reduce_op, dtype)))) {
          Register(backend_name, "reduce_" + name, subject, dtype,
                   [=] { return ToProblems(AwkwardReductions(reduce_op, dtype)); });
        }
        if (MeetsLongRows(reduce_op, dtype) && MeetsLongOnes(backend_name, subject, reduce_op, dtype,
                                                             ToProblems(LongOddRows(reduce_op, dtype)))) {
          Register(backend_name, "reduce_long_" + name, subject, dtype,
                   [=] { return ToProblems(LongOddRows(reduce_op, dtype)); });
        }
        if (MeetsFewRows(reduce_op, dtype) && MeetsLongOnes(backend_name, subject, reduce_op, dtype,
                                                            ToProblems(FewLongRows(reduce_op, dtype)))) {
          Register(backend_name, "reduce_few_rows_" + name, subject, dtype,
                   [=] { return ToProblems(FewLongRows(reduce_op, dtype)); });
        }
      }
      return;
    default:
      return Register(backend_name, std::string(Name(op)), subject, dtype,
                      [=] { return PlainProblems(op, dtype); });
  }
}

}  // namespace

void RegisterShapeTests(std::string_view backend_name, Backend* backend) {
  if (backend == nullptr) {
    ::testing::RegisterTest(std::string(backend_name).c_str(), "IsAvailable", nullptr, nullptr, __FILE__,
                            __LINE__, []() -> ::testing::Test* { return new SkippedTest; });
    return;
  }
  // An operation that is not listed would have no test below, and clients would not hear of it.
  for (Op op : kAllOps) {
    const std::string suite(backend_name);
    ::testing::RegisterTest((suite + ".Lists").c_str(), std::string(Name(op)).c_str(), nullptr, nullptr,
                            __FILE__, __LINE__,
                            [=]() -> ::testing::Test* { return new ListedTest(*backend, op); });
  }
  std::vector<std::pair<Op, DType>> chosen;
  for (const VariantInfo& variant : backend->Variants()) {
    const Subject named{backend, std::string(variant.name), variant.reproducible};
    const bool reached = std::any_of(variant.dtypes.begin(), variant.dtypes.end(), [&](DType dtype) {
      return IsReached(backend_name, variant.op, named, dtype);
    });
    ::testing::RegisterTest((std::string(backend_name) + ".Reaches").c_str(),
                            (std::string(Name(variant.op)) + "." + named.variant).c_str(), nullptr, nullptr,
                            __FILE__, __LINE__,
                            [=]() -> ::testing::Test* { return new ReachedTest(reached); });
    for (DType dtype : variant.dtypes) {
      RegisterOp(backend_name, variant.op, named, dtype);
      // Some ten times as many, for a GPU and an hour with nothing else to do.
      for (std::string_view name :
           WithConfigurations() ? variant.configurations : decltype(variant.configurations)()) {
        RegisterOp(backend_name, variant.op, {backend, std::string(name), true, /*may_refuse=*/true}, dtype);
      }
      const std::pair key(variant.op, dtype);
      if (std::find(chosen.begin(), chosen.end(), key) != chosen.end()) continue;
      chosen.push_back(key);
      RegisterOp(backend_name, variant.op, {backend, "", true}, dtype);
    }
  }
}

}  // namespace warpline::testing
