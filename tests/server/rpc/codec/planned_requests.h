// Requests whose plans are looked at, and a cache that makes those plans as the server does.
#ifndef WARPLINE_TESTS_SERVER_RPC_CODEC_PLANNED_REQUESTS_H_
#define WARPLINE_TESTS_SERVER_RPC_CODEC_PLANNED_REQUESTS_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/plan/plan_cache.h"
#include "server/rpc/codec/codec.h"
#include "tests/testing/status_matchers.h"

namespace warpline::testing {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr Limits kLimits{.max_inline_bytes = 1 << 20};

inline const Codec& CodecOf(RequestKind kind) {
  static const std::vector<Codec>& codecs = *new std::vector<Codec>(KernelCodecs());
  return codecs.at(static_cast<std::size_t>(kind));
}

inline ScannedMessage Scan(RequestKind kind, const std::string& bytes) {
  const std::span<const std::byte> slice = std::as_bytes(std::span(bytes));
  absl::StatusOr<ScannedMessage> scanned = ScanMessage(CodecOf(kind).schema, {&slice, 1});
  EXPECT_THAT(scanned, IsOk());
  return scanned.ok() ? *std::move(scanned) : ScannedMessage{};
}

inline std::string KeyOf(RequestKind kind, const std::string& bytes) {
  return PlanKey(kind, Scan(kind, bytes));
}

inline void Fill(v1::Tensor& tensor, v1::DataType data_type, std::initializer_list<std::int64_t> shape,
                 std::size_t element_bytes) {
  std::size_t bytes = element_bytes;
  tensor.set_data_type(data_type);
  for (std::int64_t size : shape) {
    tensor.add_shape(size);
    bytes *= static_cast<std::size_t>(size);
  }
  tensor.set_inline_(std::string(bytes, '\1'));
}

// A valid product, c included.
inline v1::GemmRequest Gemm(v1::DataType data_type = v1::DATA_TYPE_F32, std::size_t element_bytes = 4) {
  v1::GemmRequest request;
  const bool integers = data_type == v1::DATA_TYPE_I8;
  Fill(*request.mutable_a(), data_type, {2, 3}, element_bytes);
  Fill(*request.mutable_b(), data_type, {3, 4}, element_bytes);
  Fill(*request.mutable_c(), integers ? v1::DATA_TYPE_I32 : data_type, {2, 4}, integers ? 4 : element_bytes);
  request.set_alpha(2);
  request.set_beta(3);
  return request;
}

// y = factor * (alpha * a b + beta * c).
inline v1::RunRequest ScaledProduct(v1::DataType data_type = v1::DATA_TYPE_F32,
                                    std::size_t element_bytes = 4) {
  v1::RunRequest request;
  for (const char* name : {"a", "b", "c"}) {
    v1::NamedTensor& input = *request.add_inputs();
    input.set_name(name);
    Fill(*input.mutable_tensor(), data_type, {2, 2}, element_bytes);
  }
  v1::Step& product = *request.mutable_program()->add_steps();
  product.set_name("product");
  for (const char* name : {"a", "b", "c"}) product.add_inputs(name);
  product.mutable_gemm()->set_alpha(2);
  product.mutable_gemm()->set_beta(3);
  v1::Step& scaled = *request.mutable_program()->add_steps();
  scaled.set_name("y");
  scaled.add_inputs("product");
  scaled.mutable_scale()->set_factor(4);
  request.mutable_program()->add_outputs("y");
  return request;
}

// A cache as the door uses it.
class PlanSource {
 public:
  struct Planned {
    absl::Status status;
    PlanPtr plan;
    ScalarValues scalars;
  };
  Planned Get(RequestKind kind, const std::string& bytes) {
    const ScannedMessage scanned = Scan(kind, bytes);
    const std::string key = PlanKey(kind, scanned);
    Planned planned;
    planned.plan = cache_.Find(key, MonotonicTime());
    if (planned.plan == nullptr) {
      absl::StatusOr<DecodedPlan> decoded = DecodePlan(CodecOf(kind), scanned, {}, kLimits);
      planned.status = decoded.status();
      if (!decoded.ok()) return planned;
      planned.plan = std::make_shared<const Plan>(std::move(decoded->plan));
      cache_.Insert(key, planned.plan, OwnerId{1}, MonotonicTime());
    }
    planned.scalars = ScalarsOf(planned.plan->scalars, scanned.scalars);
    return planned;
  }
  double hits() const { return metrics_.plan_cache.hits.Value(); }
  double misses() const { return metrics_.plan_cache.misses.Value(); }

 private:
  mutable Metrics metrics_;
  PlanCache cache_{std::size_t{4} << 20, metrics_};
};

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_SERVER_RPC_CODEC_PLANNED_REQUESTS_H_
