// Runs programs of the C interface, synchronously or asynchronously.
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/abi/array.h"
#include "client/abi/client.h"
#include "client/abi/error.h"
#include "client/abi/program.h"
#include "client/abi/queue.h"
#include "client/abi/result.h"
#include "client/abi/tensor.h"
#include "client/src/result_type.h"
#include "kernels/status_macros.h"

namespace warpline::abi {
namespace {

// A call in the form that the C++ library takes.
struct Prepared {
  client::RunArgs args;
  std::vector<std::optional<HostArray>> outs;  // the destinations that the caller gave
  absl::Duration timeout;
  client::CallOptions options;
};

struct Inputs {
  const warpline_input* data;
  std::size_t count;
};
struct Destinations {
  const warpline_destination* data;
  std::size_t count;
};

absl::StatusOr<client::Operand> ToOperand(const client::Client& client, const warpline_input& input) {
  const int given = (input.array != nullptr) + (input.tensor != nullptr) + (input.id != nullptr);
  if (given != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("input ", input.name, ": ", given, " of array, tensor and id; one is needed"));
  }
  if (input.tensor != nullptr) return client::Operand(input.tensor->tensor);
  if (input.id != nullptr) return client::Operand{.resident = input.id};
  ASSIGN_OR_RETURN(const HostArray host, ToHostArray(*input.array, absl::StrCat("input ", input.name)));
  return ToConstArray(host, client.Shares(host.data, 1));
}

absl::Status Differs(std::size_t output, const HostArray& out, DType dtype, const Shape& shape) {
  return absl::InvalidArgumentError(absl::StrCat("destination ", output, ": out is ",
                                                 std::string(Name(out.dtype)), ToString(out.shape),
                                                 ", the output ", std::string(Name(dtype)), ToString(shape)));
}

absl::StatusOr<client::Destination> ToDestination(const warpline_destination& given, std::size_t index,
                                                  std::optional<HostArray>& out) {
  const int places = (given.out != nullptr) + (given.region != nullptr) + (given.keep != 0);
  if (places > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("destination ", index, ": more than one of out, region and keep"));
  }
  client::Destination destination;
  if (given.keep != 0) destination.keep = absl::Seconds(given.ttl);
  if (given.region != nullptr) {
    destination.region = const_cast<client::Region*>(&given.region->region);
  }
  if (given.out != nullptr) {
    ASSIGN_OR_RETURN(out, ToHostArray(*given.out, absl::StrCat("destination ", index)));
    RETURN_IF_ERROR(CheckWritable(*out, absl::StrCat("destination ", index)));
    if (out->IsDense()) {
      destination.data = out->data;
      destination.bytes = out->bytes;
    }
  }
  return destination;
}

absl::StatusOr<Prepared> Prepare(const client::Client& client, const warpline_program& program,
                                 const Inputs& inputs, const Destinations& destinations,
                                 const warpline_call_options* options) {
  Prepared call;
  ASSIGN_OR_RETURN(const warpline_call_options given, KnownPart(options));
  RETURN_IF_ERROR(CheckRequestId(given.request_id));
  call.timeout = TimeoutOf(given.timeout);
  call.options.request_id = TextOf(given.request_id);
  for (std::size_t i = 0; i < given.free_after_count; ++i) {
    if (given.free_after == nullptr || given.free_after[i] == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("free_after: no id ", i));
    }
    call.options.free_after.emplace_back(given.free_after[i]);
  }
  call.options.report = given.report != 0;
  if (given.progress != nullptr) {
    call.options.progress = [tell = given.progress, data = given.progress_data](
                                std::size_t bytes, std::size_t total) { tell(data, bytes, total); };
  }
  call.args.reproducible = given.reproducible != 0;
  for (std::size_t i = 0; i < inputs.count; ++i) {
    if (inputs.data[i].name == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("input ", i, " has no name"));
    }
    ASSIGN_OR_RETURN(client::Operand operand, ToOperand(client, inputs.data[i]));
    call.args.inputs.emplace_back(inputs.data[i].name, std::move(operand));
  }
  const auto outputs = static_cast<std::size_t>(program.program.outputs_size());
  if (destinations.count != 0 && destinations.count != outputs) {
    return absl::InvalidArgumentError(
        absl::StrCat(destinations.count, " destinations for ", outputs, " outputs"));
  }
  call.outs.resize(destinations.count);
  bool has_outs = false;
  for (std::size_t i = 0; i < destinations.count; ++i) {
    ASSIGN_OR_RETURN(client::Destination destination, ToDestination(destinations.data[i], i, call.outs[i]));
    call.args.destinations.push_back(std::move(destination));
    has_outs = has_outs || call.outs[i].has_value();
  }
  call.args.one_step = given.one_step != 0;
  call.args.program = program.program;
  if (!has_outs) return call;
  // Check before anything is sent, if the types are known.
  ASSIGN_OR_RETURN(const client::ResultTypes types, ResultTypesOf(call.args));
  for (std::size_t i = 0; i < call.outs.size() && i < types.size(); ++i) {
    const std::optional<HostArray>& out = call.outs[i];
    if (!out.has_value() || !types[i].has_value()) continue;
    if (out->dtype != types[i]->dtype || out->shape != types[i]->shape) {
      return Differs(i, *out, types[i]->dtype, types[i]->shape);
    }
  }
  return call;
}

// Writes results to destinations that are not dense.
absl::Status Deliver(const std::vector<std::optional<HostArray>>& outs, const client::RunResult& result) {
  for (std::size_t i = 0; i < outs.size(); ++i) {
    if (!outs[i].has_value()) continue;
    const client::Array& array = result.outputs[i].second;
    if (array.dtype() != outs[i]->dtype || array.shape() != outs[i]->shape) {
      return Differs(i, *outs[i], array.dtype(), array.shape());
    }
    if (array.data() != outs[i]->data) Scatter(array.data(), *outs[i]);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace warpline::abi

using warpline::abi::Deliver;
using warpline::abi::Guarded;
using warpline::abi::HostArray;
using warpline::abi::Prepare;
using warpline::abi::Prepared;
using warpline::abi::ToHostArray;
using warpline::client::Operand;
using warpline::client::RunArgs;
using warpline::client::RunResult;

warpline_error* warpline_run(warpline_client* client, const warpline_program* program,
                             const warpline_input* inputs, size_t input_count,
                             const warpline_destination* destinations, size_t destination_count,
                             const warpline_call_options* options, warpline_result** out) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    ASSIGN_OR_RETURN(const Prepared call, Prepare(client->client, *program, {inputs, input_count},
                                                  {destinations, destination_count}, options));
    ASSIGN_OR_RETURN(RunResult result, client->client.Run(call.args, call.timeout, call.options));
    RETURN_IF_ERROR(Deliver(call.outs, result));
    *out = new warpline_result(result);
    return absl::OkStatus();
  });
}

warpline_error* warpline_submit(warpline_client* client, const warpline_program* program,
                                const warpline_input* inputs, size_t input_count,
                                const warpline_destination* destinations, size_t destination_count,
                                const warpline_call_options* options, warpline_queue* queue, void* user_data,
                                warpline_call** call) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    ASSIGN_OR_RETURN(Prepared prepared, Prepare(client->client, *program, {inputs, input_count},
                                                {destinations, destination_count}, options));
    auto submitted = std::make_unique<warpline_call>();
    submitted->user_data = user_data;
    prepared.options.stop = submitted->stop.get_token();
    warpline_call* const ended = submitted.release();
    // The call may have ended, and been freed, when RunAsync returns.
    if (call != nullptr) *call = ended;
    try {
      client->client.RunAsync(
          prepared.args, prepared.timeout, prepared.options,
          [queue, ended, outs = std::move(prepared.outs)](absl::StatusOr<RunResult> result) {
            ended->status = result.status();
            if (result.ok()) ended->status = Deliver(outs, *result);
            if (ended->status.ok()) ended->result = std::make_unique<warpline_result>(*result);
            queue->Push(std::unique_ptr<warpline_call>(ended));
          });
    } catch (...) {  // no memory or threads, before the call began
      if (call != nullptr) *call = nullptr;
      delete ended;
      throw;
    }
    return absl::OkStatus();
  });
}

warpline_error* warpline_infer(const warpline_program* program, const warpline_input* inputs,
                               size_t input_count, warpline_result** out) {
  return Guarded([&]() -> absl::Status {
    RunArgs args{.program = program->program};
    for (std::size_t i = 0; i < input_count; ++i) {
      if (inputs[i].name == nullptr || inputs[i].array == nullptr) {
        return absl::InvalidArgumentError(absl::StrCat("input ", i, " has no name or no array"));
      }
      DLTensor type = *inputs[i].array;
      type.data = &type;  // not null, but never read
      ASSIGN_OR_RETURN(const HostArray host, ToHostArray(type, absl::StrCat("input ", inputs[i].name)));
      args.inputs.emplace_back(inputs[i].name, Operand{.dtype = host.dtype, .shape = host.shape});
    }
    auto result = std::make_unique<warpline_result>();
    ASSIGN_OR_RETURN(const warpline::client::ResultTypes types, warpline::client::ResultTypesOf(args));
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (!types[i].has_value()) {
        return absl::UnimplementedError(absl::StrCat("the type of output ", i, ", ",
                                                     program->program.outputs(static_cast<int>(i)),
                                                     ", is unknown: a step is one of a newer API"));
      }
      result->arrays.push_back(std::make_unique<warpline_array>(
          warpline::client::Array::Over(types[i]->dtype, types[i]->shape, nullptr, types[i]->bytes)));
      result->tensors.push_back(nullptr);
    }
    *out = result.release();
    return absl::OkStatus();
  });
}
