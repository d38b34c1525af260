// A small program of each step of the API.
#ifndef WARPLINE_TESTS_TESTING_EVERY_STEP_H_
#define WARPLINE_TESTS_TESTING_EVERY_STEP_H_

#include <google/protobuf/descriptor.h>

#include <string>
#include <utility>
#include <vector>

#include "warpline/requests.h"

namespace warpline::testing {

// Each comes with the name of its field in Step. The operands are 2 x 2; their elements are null.
inline std::vector<std::pair<std::string, client::RunArgs>> EveryStep() {
  const auto of = [](DType dtype, const Shape& shape) {
    return client::Operand{.dtype = dtype, .shape = shape};
  };
  std::vector<std::pair<std::string, client::RunArgs>> programs;
  const auto* operations = v1::Step::descriptor()->FindOneofByName("operation");
  for (int i = 0; i < operations->field_count(); ++i) {
    const google::protobuf::FieldDescriptor* field = operations->field(i);
    client::RunArgs args{.inputs = {{"x", of(DType::kF32, {2, 2})}, {"y", of(DType::kF32, {2, 2})}}};
    v1::Step& step = *args.program.add_steps();
    step.set_name("s");
    step.add_inputs("x");
    step.add_inputs("y");
    args.program.add_outputs("s");
    step.GetReflection()->MutableMessage(&step, field);
    if (step.has_cast()) step.mutable_cast()->set_data_type(v1::DATA_TYPE_F64);
    if (step.has_reduce()) step.mutable_reduce()->set_op(v1::REDUCE_OP_SUM);
    if (step.has_map()) {
      v1::MapNode& node = *step.mutable_map()->add_nodes();
      node.set_op(v1::MAP_OP_EQUAL);
      node.add_operands(0);
      node.add_operands(1);
    }
    if (step.has_reshape()) step.mutable_reshape()->add_shape(4);
    if (step.has_broadcast_to()) {
      for (const int size : {5, 2, 2}) step.mutable_broadcast_to()->add_shape(size);
    }
    if (step.has_roll()) step.mutable_roll()->add_shifts(1);
    if (step.has_scan()) step.mutable_scan()->set_op(v1::SCAN_OP_MAX);
    if (step.has_topk()) step.mutable_topk()->set_k(1);
    const bool has_indices = step.has_take() || step.has_take_along_axis() || step.has_put_along_axis();
    if (has_indices) args.inputs[1].second = of(DType::kI64, {2, 2});
    if (step.has_compress()) args.inputs[1].second = of(DType::kBool, {2, 2});
    if (step.has_put_along_axis()) step.add_inputs("x");
    if (step.has_searchsorted()) args.inputs[0].second = of(DType::kF32, {2});
    const bool is_binary = step.has_gemm() || step.has_add() || step.has_map() || step.has_concat() ||
                           has_indices || step.has_searchsorted() || step.has_set_slice() ||
                           step.has_compress();
    if (!is_binary) {
      step.mutable_inputs()->RemoveLast();
      args.inputs.pop_back();
    }
    programs.emplace_back(field->name(), std::move(args));
  }
  return programs;
}

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_EVERY_STEP_H_
