#include "tests/fuzz/tensor_calls.h"

#include <cstddef>
#include <iterator>
#include <string>

#include "warpline/v1/warpline.pb.h"

namespace warpline::testing {

FuzzedCall AnyTensorCall(MessageMutator& random) {
  // Mostly of one owner, on two streams, of a few small tensors: so calls meet one another.
  constexpr TensorCall kOften[] = {TensorCall::kCreate, TensorCall::kPut, TensorCall::kPut,
                                   TensorCall::kEndPut, TensorCall::kGet};
  FuzzedCall call;
  call.method = static_cast<std::uint8_t>(
      random.OneIn(4) ? random.Below(kTensorCalls)
                      : static_cast<std::uint64_t>(kOften[random.Below(std::size(kOften))]));
  call.argument = static_cast<std::uint8_t>(random.OneIn(8) ? random.Below(256) : 2 * random.Below(2));
  const std::string id = std::to_string(random.Below(3));
  const auto small = [&] { return static_cast<std::int64_t>(random.OneIn(2) ? 0 : random.Below(10)); };
  switch (static_cast<TensorCall>(call.method)) {
    case TensorCall::kCreate: {
      v1::CreateRequest request;
      request.set_data_type(v1::DATA_TYPE_U8);
      request.add_shape(static_cast<std::int64_t>(random.Below(10)));
      call.message = request.SerializeAsString();
      break;
    }
    case TensorCall::kPut: {
      v1::PutRequest request;
      request.set_id(id);
      request.set_offset(small());
      request.set_data(std::string(random.Below(10), static_cast<char>(random.Below(256))));
      call.message = request.SerializeAsString();
      break;
    }
    case TensorCall::kGet: {
      v1::GetRequest request;
      request.set_id(id);
      request.set_offset(small());
      request.set_length(small());
      call.message = request.SerializeAsString();
      break;
    }
    case TensorCall::kDrop:
    case TensorCall::kRenew: {
      v1::DropRequest request;  // both have the id at the same number
      request.set_id(id);
      call.message = request.SerializeAsString();
      break;
    }
    case TensorCall::kList: {
      v1::ListRequest request;
      request.set_page_size(static_cast<int>(random.Below(4)));
      if (random.OneIn(2)) request.set_page_token(id);
      call.message = request.SerializeAsString();
      break;
    }
    default:
      break;
  }
  return call;
}

std::unique_ptr<google::protobuf::Message> NewTensorMessage(std::uint8_t method) {
  switch (static_cast<TensorCall>(method % kTensorCalls)) {
    case TensorCall::kCreate:
      return std::make_unique<v1::CreateRequest>();
    case TensorCall::kPut:
      return std::make_unique<v1::PutRequest>();
    case TensorCall::kGet:
      return std::make_unique<v1::GetRequest>();
    case TensorCall::kDrop:
      return std::make_unique<v1::DropRequest>();
    case TensorCall::kRenew:
      return std::make_unique<v1::RenewRequest>();
    case TensorCall::kList:
      return std::make_unique<v1::ListRequest>();
    default:
      return nullptr;
  }
}

}  // namespace warpline::testing
