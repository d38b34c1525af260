#include "tests/fuzz/valid_requests.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "proto/rules/tensor_rules.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline::testing {
namespace {

using Dims = std::vector<std::int64_t>;

constexpr v1::DataType kGemmTypes[] = {v1::DATA_TYPE_F32, v1::DATA_TYPE_F64, v1::DATA_TYPE_F16,
                                       v1::DATA_TYPE_BF16, v1::DATA_TYPE_I8};

class Requests {
 public:
  explicit Requests(MessageMutator& random) : random_(random) {}

  v1::TransposeRequest Transpose() {
    v1::TransposeRequest request;
    const Dims dims = AnyDims();
    Fill(*request.mutable_x(), AnyType(17), dims, true);
    for (int axis : Permutation(dims.size())) request.add_perm(axis);
    request.set_variant(AnyOf({"", "", "eigen", "reference"}));
    AddSink(*request.mutable_options(), "");
    return request;
  }

  v1::GemmRequest Gemm() {
    v1::GemmRequest request;
    const v1::DataType type = kGemmTypes[random_.Below(std::size(kGemmTypes))];
    const v1::DataType out = type == v1::DATA_TYPE_I8 ? v1::DATA_TYPE_I32 : type;
    const std::int64_t m = Size(), n = Size(), k = Size(), batch = random_.OneIn(3) ? Size() : 0;
    request.set_trans_a(random_.OneIn(3));
    request.set_trans_b(random_.OneIn(3));
    const auto matrix = [&](bool transposed, std::int64_t rows, std::int64_t cols, bool batched) {
      Dims dims = transposed ? Dims{cols, rows} : Dims{rows, cols};
      if (batch > 0 && batched) dims.insert(dims.begin(), batch);
      return dims;
    };
    Fill(*request.mutable_a(), type, matrix(request.trans_a(), m, k, true), true);
    Fill(*request.mutable_b(), type, matrix(request.trans_b(), k, n, random_.OneIn(2)), true);
    request.set_alpha(2);
    if (random_.OneIn(2)) {
      Fill(*request.mutable_c(), out, matrix(false, m, n, true), true);
      request.set_beta(3);
    }
    if (random_.OneIn(3)) Fill(*request.mutable_bias(), out, {n}, false);
    if (random_.OneIn(3)) request.set_activation(v1::ACTIVATION_RELU);
    request.set_variant(AnyOf({"", "", "openblas", "eigen", "reference"}));
    AddSink(*request.mutable_options(), "");
    return request;
  }

  v1::ReduceRequest Reduce() {
    v1::ReduceRequest request;
    const Dims dims = AnyDims();
    Fill(*request.mutable_x(), AnyType(13), dims, true);
    request.set_op(static_cast<v1::ReduceOp>(1 + random_.Below(17)));
    std::vector<int> axes = Permutation(dims.size());
    axes.resize(random_.Below(axes.size() + 1));
    for (int axis : axes) request.add_axes(axis);
    request.set_keepdims(random_.OneIn(2));
    request.set_variant(AnyOf({"", "", "eigen", "reference"}));
    AddSink(*request.mutable_options(), "");
    return request;
  }

  v1::RunRequest Run() {
    v1::RunRequest request;
    v1::Program& program = *request.mutable_program();
    const v1::DataType type = random_.OneIn(2) ? v1::DATA_TYPE_F32 : v1::DATA_TYPE_F64;
    const std::int64_t side = random_.OneIn(3) ? kResidentSide : Size();
    std::vector<std::string> names;
    for (const char* name : {"a", "b", "c"}) {
      if (names.size() > 1 && random_.OneIn(3)) break;
      v1::NamedTensor& input = *request.add_inputs();
      input.set_name(name);
      Fill(*input.mutable_tensor(), type, {side, side}, true);
      names.emplace_back(name);
    }
    std::vector<std::string> unread = names;
    const auto read = [&](v1::Step& step) {
      // Unread tensors come first: a program with a tensor that no step reads is refused.
      std::string name = unread.empty() ? names[random_.Below(names.size())] : unread.back();
      std::erase(unread, name);
      step.add_inputs(std::move(name));
    };
    for (std::uint64_t i = 1 + random_.Below(5); i > 0 || unread.size() > 1; i -= i > 0 ? 1 : 0) {
      v1::Step& step = *program.add_steps();
      step.set_name("s" + std::to_string(program.steps_size()));
      std::string result = step.name();
      read(step);
      // With more than one left, only a step of two inputs makes them fewer.
      switch (i == 0 ? 4 : random_.Below(17)) {
        case 0:
          step.mutable_transpose()->add_perm(1);
          step.mutable_transpose()->add_perm(0);
          break;
        case 1:
          read(step);
          step.mutable_gemm()->set_alpha(0.5);
          if (random_.OneIn(2)) {
            read(step);
            step.mutable_gemm()->set_beta(2);
          }
          break;
        case 2:
          step.mutable_scale()->set_factor(3);
          break;
        case 3:
          step.mutable_reduce()->set_op(v1::REDUCE_OP_SUM);
          step.mutable_reduce()->add_axes(static_cast<int>(random_.Below(2)));
          step.mutable_reduce()->set_keepdims(true);
          break;
        case 4:
          read(step);
          step.mutable_add();
          break;
        case 5: {
          v1::MapStep& map = *step.mutable_map();
          v1::MapNode& constant = *map.add_nodes();
          constant.set_op(v1::MAP_OP_CONSTANT);
          constant.set_data_type(type);
          constant.set_real(1.5);
          v1::MapNode& node = *map.add_nodes();
          node.set_op(random_.OneIn(2) ? v1::MAP_OP_MULTIPLY : v1::MAP_OP_MAXIMUM);
          node.add_operands(0);
          node.add_operands(1);
          if (random_.OneIn(2)) {  // two results
            v1::MapNode& last = *map.add_nodes();
            last.set_op(v1::MAP_OP_NEGATIVE);
            last.add_operands(2);
            v1::MapOutput& further = *map.add_outputs();
            further.set_name(step.name() + "b");
            further.set_node(1);
            names.push_back(further.name());
            unread.push_back(further.name());
          }
          break;
        }
        case 6: {
          v1::SliceStep& reversed = *step.mutable_slice();
          reversed.add_starts(-1);
          reversed.add_ends(-side - 1);
          reversed.add_axes(static_cast<int>(random_.Below(2)));
          reversed.add_steps(-1);
          break;
        }
        case 7:
          step.mutable_reshape()->add_shape(-1);
          step.mutable_reshape()->add_shape(side);
          break;
        case 8:
          step.mutable_broadcast_to()->add_shape(side);
          step.mutable_broadcast_to()->add_shape(side);
          break;
        case 9: {
          // The whole is cut to the size of a part again.
          step.add_inputs(step.inputs(0));
          step.mutable_concat()->set_axis(static_cast<int>(random_.Below(2)));
          const std::string joined = step.name();
          const int axis = step.concat().axis();
          v1::Step& half = *program.add_steps();
          half.set_name("s" + std::to_string(program.steps_size()));
          half.add_inputs(joined);
          half.mutable_slice()->add_starts(0);
          half.mutable_slice()->add_ends(2 * side);
          half.mutable_slice()->add_axes(axis);
          half.mutable_slice()->add_steps(2);
          result = half.name();
          break;
        }
        case 10:
          step.mutable_scan()->set_op(static_cast<v1::ScanOp>(1 + random_.Below(4)));
          step.mutable_scan()->set_axis(static_cast<int>(random_.Below(2)));
          step.mutable_scan()->set_exclusive(random_.OneIn(2));
          step.mutable_scan()->set_reverse(random_.OneIn(2));
          break;
        case 11:
          step.mutable_sort()->set_axis(static_cast<int>(random_.Below(2)));
          step.mutable_sort()->set_descending(random_.OneIn(2));
          if (random_.OneIn(2)) step.mutable_sort()->add_kth(0);
          break;
        case 12: {
          // Sorted once more, by places.
          const std::string of = step.inputs(0), places = step.name();
          step.mutable_argsort()->set_axis(static_cast<int>(random_.Below(2)));
          const int axis = step.argsort().axis();
          v1::Step& next = *program.add_steps();
          next.set_name("s" + std::to_string(program.steps_size()));
          next.add_inputs(of);
          next.add_inputs(places);
          if (random_.OneIn(2)) {
            next.mutable_take_along_axis()->set_axis(axis);
          } else {
            next.add_inputs(of);
            next.mutable_put_along_axis()->set_axis(axis);
          }
          result = next.name();
          break;
        }
        case 13:
          read(step);
          step.mutable_set_slice()->add_starts(-1);
          step.mutable_set_slice()->add_ends(-side - 1);
          step.mutable_set_slice()->add_steps(-1);
          break;
        case 15:
          if (random_.OneIn(2)) {
            step.mutable_roll()->add_shifts(static_cast<int>(random_.Below(9)) - 4);
          } else if (random_.OneIn(2)) {
            step.mutable_tile()->add_counts(1);
          } else {
            step.mutable_pad()->add_before(0);
            step.mutable_pad()->add_after(0);
          }
          break;
        case 14:
          if (side > 0) {
            step.mutable_topk()->set_k(side);
            break;
          }
          [[fallthrough]];
        default:
          step.mutable_cast()->set_data_type(type);
          break;
      }
      names.push_back(result);
      unread.push_back(result);
    }
    for (const std::string& name : unread) program.add_outputs(name);
    if (random_.OneIn(4)) {  // what a mask takes, which no step can read
      v1::Step& mask = *program.add_steps();
      mask.set_name("mask");
      mask.add_inputs(names.front());
      mask.mutable_cast()->set_data_type(v1::DATA_TYPE_BOOL);
      v1::Step& taken = *program.add_steps();
      taken.set_name("taken");
      taken.add_inputs(names.front());
      taken.add_inputs("mask");
      taken.mutable_compress();
      program.add_outputs("taken");
      return request;
    }
    if (!unread.empty()) AddSink(*request.mutable_options(), unread.front());
    return request;
  }

 private:
  std::int64_t Size() { return static_cast<std::int64_t>(random_.OneIn(12) ? 0 : 1 + random_.Below(7)); }
  v1::DataType AnyType(std::uint64_t count) { return static_cast<v1::DataType>(1 + random_.Below(count)); }
  std::string AnyOf(std::initializer_list<const char*> texts) {
    return texts.begin()[random_.Below(texts.size())];
  }
  Dims AnyDims() {
    Dims dims(random_.Below(5));
    for (std::int64_t& size : dims) size = dims.size() > 3 ? std::min<std::int64_t>(Size(), 3) : Size();
    return dims;
  }
  std::vector<int> Permutation(std::size_t rank) {
    std::vector<int> axes(rank);
    std::iota(axes.begin(), axes.end(), 0);
    for (std::size_t i = rank; i > 1; --i) std::swap(axes[i - 1], axes[random_.Below(i)]);
    return axes;
  }

  // Inline, or now and then in a region, an upload, or resident if there is such a tensor.
  void Fill(v1::Tensor& tensor, v1::DataType type, const Dims& dims, bool may_be_padded) {
    tensor.set_data_type(type);
    Shape shape;
    for (std::int64_t size : dims) {
      tensor.add_shape(size);
      shape.Append(size);
    }
    if (type == v1::DATA_TYPE_F32 && dims == Dims{kResidentSide, kResidentSide} && random_.OneIn(2)) {
      tensor.clear_shape();
      tensor.clear_data_type();
      tensor.mutable_resident()->set_id(kResidentNames[random_.Below(std::size(kResidentNames))]);
      return;
    }
    if (may_be_padded && dims.size() >= 2 && dims.back() > 0 && random_.OneIn(4)) {
      tensor.set_row_stride(dims.back() + static_cast<std::int64_t>(random_.Below(3)));
    }
    if (random_.OneIn(8)) {
      tensor.mutable_region()->set_id(kRegionNames[random_.Below(std::size(kRegionNames))]);
      tensor.mutable_region()->set_offset(static_cast<std::int64_t>(16 * random_.Below(32)));
      return;
    }
    if (tensor.row_stride() == 0 && random_.OneIn(8)) {
      tensor.mutable_upload()->set_number(uploads_++);
      return;
    }
    const auto dtype = CheckDataType("", type);
    const auto bytes = StorageBytes("", *dtype, shape, tensor.row_stride());
    std::string elements(*bytes, '\0');
    // The padding of the last row may be sent too.
    if (tensor.row_stride() > 0 && random_.OneIn(2)) {
      elements.resize(*bytes + static_cast<std::size_t>(tensor.row_stride() - dims.back()) * SizeOf(*dtype));
    }
    for (char& byte : elements) byte = static_cast<char>(random_.Below(256));
    tensor.set_inline_(std::move(elements));
  }

  void AddSink(v1::RequestOptions& options, const std::string& output) {
    if (random_.OneIn(2)) return;
    v1::Sink& sink = *options.add_sinks();
    sink.set_output(output);
    if (random_.OneIn(4)) {
      sink.mutable_stream();
    } else if (random_.OneIn(2)) {
      sink.mutable_resident()->set_ttl_seconds(random_.OneIn(2) ? 0 : 60);
    } else {
      sink.mutable_region()->set_id("r2");
      sink.mutable_region()->set_offset(static_cast<std::int64_t>(16 * random_.Below(32)));
      sink.mutable_region()->set_call(static_cast<std::int64_t>(random_.Below(3)));
    }
  }

  MessageMutator& random_;
  int uploads_ = 0;
};

template <typename T>
std::unique_ptr<google::protobuf::Message> Owned(T message) {
  return std::make_unique<T>(std::move(message));
}

}  // namespace

std::unique_ptr<google::protobuf::Message> NewRequest(RequestKind kind) {
  switch (kind) {
    case RequestKind::kTranspose:
      return std::make_unique<v1::TransposeRequest>();
    case RequestKind::kGemm:
      return std::make_unique<v1::GemmRequest>();
    case RequestKind::kReduce:
      return std::make_unique<v1::ReduceRequest>();
    default:
      return std::make_unique<v1::RunRequest>();
  }
}

std::unique_ptr<google::protobuf::Message> ValidRequest(RequestKind kind, MessageMutator& random) {
  Requests requests(random);
  switch (kind) {
    case RequestKind::kTranspose:
      return Owned(requests.Transpose());
    case RequestKind::kGemm:
      return Owned(requests.Gemm());
    case RequestKind::kReduce:
      return Owned(requests.Reduce());
    default:
      return Owned(requests.Run());
  }
}

}  // namespace warpline::testing
