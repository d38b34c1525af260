#include "client/bench/work.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "client/bench/values.h"
#include "client/cli/transport.h"
#include "client/src/methods.h"
#include "client/src/one_step.h"
#include "client/src/region_allocator.h"
#include "client/src/result_type.h"
#include "client/src/shared_region.h"
#include "kernels/status_macros.h"
#include "proto/rules/one_step.h"

namespace warpline::client {
namespace {

// The maximum bytes of a region that an array uses.
std::size_t BlockBytes(std::size_t bytes) {
  constexpr std::size_t kUnit = RegionAllocator::kLargeAlignment;
  return (bytes + kUnit - 1) / kUnit * kUnit;
}

// The outputs of every request.
const std::vector<std::string> kOutputs = {kOneStepName};

}  // namespace

absl::StatusOr<Operand> BenchWork::AddOperand(const BenchFlags& flags, const char* name, const Shape& shape,
                                              ConstArray& local) {
  ASSIGN_OR_USAGE(const std::size_t bytes, ByteSize({.dtype = flags.dtype, .shape = shape}));
  const bool is_resident = flags.IsResident(name);
  Array array;
  if (region_ && !is_resident) {
    ASSIGN_OR_RETURN(array, region_->Allocate(flags.dtype, shape));
  } else {
    ASSIGN_OR_RETURN(array, Array::Allocate(flags.dtype, shape, bytes));
  }
  if (flags.op == BenchOp::kTranspose || flags.op == BenchOp::kEcho) {
    FillDistinct(flags.dtype, array.data(), shape.Count());
  } else {
    FillSmall(flags.dtype, array.data(), shape.Count(), operands_.size());
  }
  operands_.push_back(array);
  local = array.View();
  if (!is_resident) {
    bytes_in_ += bytes;
    return local;
  }
  ASSIGN_OR_RETURN(Tensor tensor, client_->Put(local, flags.common.deadline));
  tensors_.push_back(std::move(tensor));
  return tensors_.back();
}

absl::Status BenchWork::OpenRegion(const BenchFlags& flags) {
  const Shape& s = flags.shape;
  // Enough for all operands, wherever they lie.
  std::size_t bytes = 0;
  const std::vector<Shape> shapes =
      flags.op == BenchOp::kGemm ? std::vector<Shape>{{s[0], s[2]}, {s[2], s[1]}} : std::vector<Shape>{s};
  for (const Shape& shape : shapes) {
    ASSIGN_OR_USAGE(const std::size_t size, ByteSize({.dtype = flags.dtype, .shape = shape}));
    bytes += BlockBytes(size);
  }
  ASSIGN_OR_USAGE(const std::size_t result, flags.ResultBytes());
  if (!flags.keep) bytes += BlockBytes(result) * static_cast<std::size_t>(flags.concurrency);
  ASSIGN_OR_RETURN(region_, client_->OpenRegion(std::max<std::size_t>(bytes, 1), flags.common.deadline));
  return absl::OkStatus();
}

SharedPlaces BenchWork::Places() const {
  if (!region_) return {};
  // The slices have no call number: if a call fails, nothing here is reused.
  return {.find = [region = region_->shared()](
                      const void* data, std::size_t bytes) -> absl::StatusOr<std::optional<v1::RegionSlice>> {
    const std::ptrdiff_t offset = static_cast<const std::byte*>(data) - region->data();
    if (offset < 0 || static_cast<std::size_t>(offset) + bytes > region->bytes()) return std::nullopt;
    v1::RegionSlice slice;
    slice.set_id(region->id());
    slice.set_offset(offset);
    return slice;
  }};
}

absl::Status BenchWork::AddMessages(const BenchFlags& flags, RunArgs args) {
  method_ = RunMethod();
  if (keep_) args.destinations = {{.keep = absl::ZeroDuration()}};
  args.destinations.resize(1);
  run_ = args;
  ASSIGN_OR_RETURN(const ResultTypes types, ResultTypesOf(args));
  const std::optional<ArrayType>& type = types[0];
  const bool shares_results = region_ && !keep_ && type && type->bytes > 0;
  const int count = shares_results ? flags.concurrency : 1;
  for (int i = 0; i < count; ++i) {
    SharedPlaces places = Places();
    if (shares_results) {
      SharedResult result;
      ASSIGN_OR_RETURN(result.array, region_->Allocate(type->dtype, type->shape));
      ASSIGN_OR_RETURN(const std::optional<v1::RegionSlice> slice,
                       places.find(result.array.data(), type->bytes));
      result.slice = *slice;
      places.results.push_back(std::move(result));
    }
    absl::StatusOr<OutgoingMessage> message = Encode(args, places);
    if (!message.ok()) return AsUsageError(message.status());
    messages_.emplace_back();
    messages_.back().Swap(&message->buffer);
    places_.push_back(std::move(places));
  }
  return absl::OkStatus();
}

absl::StatusOr<BenchWork> BenchWork::Create(const BenchFlags& flags) {
  if (flags.shared) RETURN_IF_ERROR(CheckRegions(flags.common));
  BenchWork work;
  work.keep_ = flags.keep;
  work.echo_ = flags.op == BenchOp::kEcho;
  work.client_ = std::make_unique<Client>(
      flags.common.server,
      ClientOptions{.channel = flags.common.channel(), .region_socket = flags.common.regions});
  if (flags.shared) RETURN_IF_ERROR(work.OpenRegion(flags));
  const Shape& s = flags.shape;
  ConstArray first, second;
  if (flags.op == BenchOp::kGemm) {
    GemmArgs args;
    args.variant = flags.common.variant;
    args.reproducible = flags.common.reproducible;
    ASSIGN_OR_RETURN(args.a, work.AddOperand(flags, "a", {s[0], s[2]}, first));
    ASSIGN_OR_RETURN(args.b, work.AddOperand(flags, "b", {s[2], s[1]}, second));
    RETURN_IF_ERROR(work.AddMessages(flags, OneStep(args)));
    args.a = first;
    args.b = second;
    work.args_ = std::move(args);
    return work;
  }
  ASSIGN_OR_RETURN(const Operand x, work.AddOperand(flags, "x", s, first));
  if (flags.op == BenchOp::kReduce) {
    ReduceArgs args{.x = x,
                    .op = flags.reduce_op,
                    .axes = flags.axes,
                    .variant = flags.common.variant,
                    .reproducible = flags.common.reproducible};
    RETURN_IF_ERROR(work.AddMessages(flags, OneStep(args)));
    args.x = first;
    work.args_ = std::move(args);
    return work;
  }
  TransposeArgs args{.x = x, .variant = flags.common.variant, .reproducible = flags.common.reproducible};
  if (work.echo_) {
    absl::StatusOr<OutgoingMessage> message = EncodeEcho({first.data, work.bytes_in_, first.owner});
    if (!message.ok()) return AsUsageError(message.status());
    work.method_ = EchoMethod();
    work.messages_.emplace_back();
    work.messages_.back().Swap(&message->buffer);
  } else {
    RETURN_IF_ERROR(work.AddMessages(flags, OneStep(args)));
  }
  args.x = first;
  work.args_ = std::move(args);
  return work;
}

absl::StatusOr<std::size_t> BenchWork::Verify(RawChannel& channel, absl::Duration deadline) const {
  absl::StatusOr<grpc::ByteBuffer> answer = channel.Call(method_, Message(0), absl::Now() + deadline, "");
  if (echo_ && absl::IsUnimplemented(answer.status())) {
    return WithAdvice(answer.status(), "the server has no echo: start it as warplined --echo");
  }
  if (!answer.ok()) return InOneStep(run_, answer.status());
  const grpc::ByteBuffer& response = *answer;
  if (echo_) {
    std::vector<char> bytes(bytes_in_);
    ASSIGN_OR_RETURN(const std::size_t got, DecodeEcho(response, {bytes.data(), bytes.size()}));
    if (got == bytes_in_ && (got == 0 || std::memcmp(bytes.data(), operands_[0].data(), got) == 0))
      return got;
    return absl::InternalError("wrong result: other bytes came back");
  }
  const Destination destination = keep_ ? Destination{.keep = absl::ZeroDuration()} : Destination();
  ASSIGN_OR_RETURN(RunResult result,
                   DecodeRunResult(response, kOutputs, {&destination, 1}, MakeUnleased, places_[0]));
  Array& array = result.outputs.front().second;
  const std::optional<Tensor>& tensor = result.tensors.front();
  const bool needs_memory = !tensor && places_[0].result(0) == nullptr;
  if (tensor) {
    ASSIGN_OR_RETURN(array, client_->Get(*tensor, deadline));
    RETURN_IF_ERROR(client_->Drop(tensor->id(), deadline));
  }
  RETURN_IF_ERROR(CheckResult(array));
  return needs_memory ? array.bytes() : 0;
}

absl::Status BenchWork::CheckResult(const Array& result) const {
  if (const auto* transpose = std::get_if<TransposeArgs>(&args_)) return CheckTranspose(*transpose, result);
  if (const auto* gemm = std::get_if<GemmArgs>(&args_)) return CheckGemm(*gemm, result);
  return CheckReduce(std::get<ReduceArgs>(args_), result);
}

absl::StatusOr<BenchWork::Answer> BenchWork::Decode(const grpc::ByteBuffer& response, std::size_t slot,
                                                    const Destination& destination) const {
  if (echo_) {
    ASSIGN_OR_RETURN(const std::size_t bytes, DecodeEcho(response, destination));
    return Answer{.bytes = bytes, .kept = {}};
  }
  Destination place = destination;
  if (keep_) place = {.keep = absl::ZeroDuration()};
  ASSIGN_OR_RETURN(const RunResult result, DecodeRunResult(response, kOutputs, {&place, 1}, MakeUnleased,
                                                           places_[places_.size() == 1 ? 0 : slot]));
  if (const auto& tensor = result.tensors.front()) return Answer{.bytes = 0, .kept = tensor->id()};
  return Answer{.bytes = result.outputs.front().second.bytes(), .kept = {}};
}

}  // namespace warpline::client
