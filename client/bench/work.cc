#include "client/bench/work.h"

#include <cstring>
#include <utility>
#include <variant>

#include "absl/time/clock.h"
#include "client/bench/values.h"
#include "client/src/codec.h"
#include "client/src/methods.h"
#include "kernels/status_macros.h"

namespace warpline::client {

absl::StatusOr<ConstArray> BenchWork::AddOperand(DType dtype, const Shape& shape, bool distinct) {
  ASSIGN_OR_USAGE(const std::size_t bytes, ByteSize({.dtype = dtype, .shape = shape}));
  ASSIGN_OR_RETURN(Array array, Array::Allocate(dtype, shape, bytes));
  if (distinct) {
    FillDistinct(dtype, array.data(), shape.Count());
  } else {
    FillSmall(dtype, array.data(), shape.Count(), operands_.size());
  }
  bytes_in_ += bytes;
  operands_.push_back(array);
  return array.View();
}

absl::StatusOr<BenchWork> BenchWork::Create(const BenchFlags& flags) {
  BenchWork work;
  absl::StatusOr<OutgoingMessage> message;
  if (flags.op == BenchOp::kGemm) {
    const Shape& s = flags.shape;
    GemmArgs args;
    args.variant = flags.common.variant;
    ASSIGN_OR_RETURN(args.a, work.AddOperand(flags.dtype, {s[0], s[2]}, false));
    ASSIGN_OR_RETURN(args.b, work.AddOperand(flags.dtype, {s[2], s[1]}, false));
    message = Encode(args);
    work.args_ = std::move(args);
  } else if (flags.op == BenchOp::kReduce) {
    ReduceArgs args;
    args.op = flags.reduce_op;
    args.axes = flags.axes;
    args.variant = flags.common.variant;
    ASSIGN_OR_RETURN(args.x, work.AddOperand(flags.dtype, flags.shape, false));
    message = Encode(args);
    work.args_ = std::move(args);
  } else {
    TransposeArgs args;
    args.variant = flags.common.variant;
    ASSIGN_OR_RETURN(args.x, work.AddOperand(flags.dtype, flags.shape, true));
    work.echo_ = flags.op == BenchOp::kEcho;
    message = work.echo_ ? EncodeEcho({args.x.data, work.bytes_in_, args.x.owner}) : Encode(args);
    work.args_ = std::move(args);
  }
  if (!message.ok()) return AsUsageError(message.status());
  work.method_ = work.echo_ ? EchoMethod() : MethodOf(work.args_);
  work.message_.Swap(&message->buffer);
  return work;
}

absl::StatusOr<std::size_t> BenchWork::Verify(RawChannel& channel, absl::Duration deadline) const {
  absl::StatusOr<grpc::ByteBuffer> answer = channel.Call(method_, Message(), absl::Now() + deadline, "");
  if (echo_ && absl::IsUnimplemented(answer.status())) {
    return WithAdvice(answer.status(), "the server has no echo: start it as warplined --echo");
  }
  if (!answer.ok()) return answer.status();
  const grpc::ByteBuffer& response = *answer;
  if (echo_) {
    std::vector<char> bytes(bytes_in_);
    ASSIGN_OR_RETURN(const std::size_t got, DecodeEcho(response, {bytes.data(), bytes.size()}));
    if (got == bytes_in_ && (got == 0 || std::memcmp(bytes.data(), operands_[0].data(), got) == 0))
      return got;
    return absl::InternalError("wrong result: other bytes came back");
  }
  ASSIGN_OR_RETURN(const Result result, DecodeResult(response, {}));
  absl::Status status;
  if (const auto* transpose = std::get_if<TransposeArgs>(&args_)) {
    status = CheckTranspose(*transpose, result.array);
  } else if (const auto* gemm = std::get_if<GemmArgs>(&args_)) {
    status = CheckGemm(*gemm, result.array);
  } else {
    status = CheckReduce(std::get<ReduceArgs>(args_), result.array);
  }
  if (!status.ok()) return status;
  return result.array.bytes();
}

absl::StatusOr<std::size_t> BenchWork::Decode(const grpc::ByteBuffer& response,
                                              const Destination& destination) const {
  if (echo_) return DecodeEcho(response, destination);
  ASSIGN_OR_RETURN(const Result result, DecodeResult(response, destination));
  return result.array.bytes();
}

}  // namespace warpline::client
