// Requests as the wire scanner leaves them: tokens in the place of tensor contents and scalars, and what they
// stand for. Tests set scalars to their values; Convert puts the tokens in their place.
#ifndef WARPLINE_TESTS_SERVER_RPC_CODEC_SCANNED_REQUESTS_H_
#define WARPLINE_TESTS_SERVER_RPC_CODEC_SCANNED_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "google/protobuf/message.h"
#include "proto/wire/scanner.h"
#include "server/rpc/codec/convert.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// The scanner's output for a request: tensors whose content is a token, and the ranges of the payloads.
class Scanned {
 public:
  // With a payload of `bytes` bytes; none if negative.
  void Fill(v1::Tensor* tensor, v1::DataType data_type, const std::vector<std::int64_t>& shape,
            std::int64_t bytes) {
    tensor->set_data_type(data_type);
    for (std::int64_t size : shape) tensor->add_shape(size);
    if (bytes < 0) return;
    tensor->set_inline_(PayloadToken(payloads.size()));
    payloads.push_back({.slice = payloads.size(), .offset = 0, .length = static_cast<std::size_t>(bytes)});
  }
  void SetPayloadBytes(std::size_t index, std::size_t bytes) { payloads.at(index).length = bytes; }

  // A reference to this resident tensor, or to one that is refused.
  void Refer(v1::Tensor* tensor, absl::StatusOr<TensorSpec> resident) {
    tensor->mutable_resident()->set_id(ReferenceToken(references.size()));
    references.push_back(std::move(resident));
  }

  // A slice of a region, which is of no further account here.
  void Share(v1::RegionSlice* slice, std::int64_t offset, std::int64_t call) {
    slice->set_id(ReferenceToken(references.size()));
    references.emplace_back(TensorSpec());
    slice->set_offset(IntegerToken(integers.size()));
    integers.push_back(offset);
    slice->set_call(IntegerToken(integers.size()));
    integers.push_back(call);
  }

  std::vector<PayloadRange> payloads;
  std::vector<std::int64_t> integers;
  std::vector<absl::StatusOr<TensorSpec>> references;
};

// Valid requests, for tests to break: a 2 x 3 f32 array for x; a 2 x 3 times 3 x 4 product with a 2 x 4 c.
struct Transpose : Scanned {
  Transpose() { Fill(request.mutable_x(), v1::DATA_TYPE_F32, {2, 3}, 24); }
  v1::TransposeRequest request;
};

struct Reduce : Scanned {
  explicit Reduce(v1::DataType data_type = v1::DATA_TYPE_F32, const std::vector<std::int64_t>& shape = {2, 3},
                  std::int64_t bytes = 24) {
    Fill(request.mutable_x(), data_type, shape, bytes);
    request.set_op(v1::REDUCE_OP_SUM);
  }
  v1::ReduceRequest request;
};

struct Gemm : Scanned {
  Gemm() {
    Fill(request.mutable_a(), v1::DATA_TYPE_F32, {2, 3}, 24);
    Fill(request.mutable_b(), v1::DATA_TYPE_F32, {3, 4}, 48);
    Fill(request.mutable_c(), v1::DATA_TYPE_F32, {2, 4}, 32);
    request.set_beta(2);
  }
  // Another shape for a tensor, and the payload to go with it.
  void Reshape(v1::Tensor* tensor, std::size_t index, const std::vector<std::int64_t>& shape) {
    tensor->clear_shape();
    std::size_t bytes = 4;
    for (std::int64_t size : shape) {
      tensor->add_shape(size);
      bytes *= static_cast<std::size_t>(size);
    }
    SetPayloadBytes(index, bytes);
  }
  v1::GemmRequest request;
};

// Replaces the scalars of a message, which are all of its fields of type double, by tokens, and returns them.
inline std::vector<double> TakeScalars(google::protobuf::Message& message, std::vector<double> taken = {}) {
  const google::protobuf::Reflection* reflection = message.GetReflection();
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection->ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->cpp_type() == google::protobuf::FieldDescriptor::CPPTYPE_DOUBLE) {
      taken.push_back(reflection->GetDouble(message, field));
      reflection->SetDouble(&message, field, ScalarToken(taken.size() - 1));
    } else if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) {
      continue;
    } else if (!field->is_repeated()) {
      taken = TakeScalars(*reflection->MutableMessage(&message, field), std::move(taken));
    } else {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        taken = TakeScalars(*reflection->MutableRepeatedMessage(&message, field, i), std::move(taken));
      }
    }
  }
  return taken;
}

// The scalars of the steps that read any, in their order.
template <typename Request>
ScalarValues ScalarsOf(const Conversion& conversion, const Request& r) {
  auto request = r.request;
  return ScalarsOf(conversion.scalars, TakeScalars(request));
}

// The first output, and the problem of the first step.
inline const TensorSpec& OutputOf(const Conversion& conversion) {
  return conversion.program.tensors.at(conversion.program.outputs.at(0));
}

template <typename ProblemT>
const ProblemT& ProblemOf(const Conversion& conversion) {
  return std::get<ProblemT>(conversion.program.steps.at(0).problem);
}

// The numbers of the inputs' payloads, in their order; -1 where there is none.
inline std::vector<int> PayloadsOf(const Conversion& conversion) {
  std::vector<int> payloads;
  for (const CheckedTensor::Source& source : conversion.sources) {
    payloads.push_back(source.payload.has_value() ? static_cast<int>(*source.payload) : -1);
  }
  return payloads;
}

template <typename Request>
absl::StatusOr<Conversion> Convert(const Request& r, std::int64_t max_inline_bytes = 1 << 20) {
  auto request = r.request;
  const std::vector<double> scalars = TakeScalars(request);
  return FromProto(request, {r.payloads, scalars, r.integers, r.references},
                   {.max_inline_bytes = max_inline_bytes});
}

}  // namespace warpline

#endif  // WARPLINE_TESTS_SERVER_RPC_CODEC_SCANNED_REQUESTS_H_
