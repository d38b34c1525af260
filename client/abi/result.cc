#include "client/abi/result.h"

#include <utility>

#include "client/abi/process.h"

warpline_result::warpline_result(warpline::client::RunResult& run) : execution(std::move(run.execution)) {
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    const bool stays = i < run.tensors.size() && run.tensors[i].has_value();
    arrays.push_back(stays ? nullptr : std::make_unique<warpline_array>(std::move(run.outputs[i].second)));
    tensors.push_back(stays ? std::make_unique<warpline_tensor>(*std::move(run.tensors[i])) : nullptr);
  }
}

size_t warpline_result_count(const warpline_result* result) { return result->arrays.size(); }

const DLTensor* warpline_result_array(const warpline_result* result, size_t index) {
  const auto& array = result->arrays[index];
  return array == nullptr ? nullptr : array->view.get();
}

warpline_array* warpline_result_take_array(warpline_result* result, size_t index) {
  return result->arrays[index].release();
}

warpline_tensor* warpline_result_take_tensor(warpline_result* result, size_t index) {
  return result->tensors[index].release();
}

const char* warpline_result_request_id(const warpline_result* result) {
  return result->execution.request_id().c_str();
}

const char* warpline_result_backend(const warpline_result* result) {
  return result->execution.backend().c_str();
}

int32_t warpline_result_device(const warpline_result* result) { return result->execution.device(); }

size_t warpline_result_variant_count(const warpline_result* result) {
  return static_cast<size_t>(result->execution.variants_size());
}

const char* warpline_result_variant(const warpline_result* result, size_t index) {
  if (index >= warpline_result_variant_count(result)) return "";
  return result->execution.variants(static_cast<int>(index)).c_str();
}

warpline_stage_seconds warpline_result_seconds(const warpline_result* result) {
  const warpline::v1::StageTimes& times = result->execution.stage_times();
  return {.convert = times.convert(),
          .admission = times.admission(),
          .queue = times.queue(),
          .stage = times.stage(),
          .device = times.device()};
}

void warpline_result_free(warpline_result* result) { warpline::abi::FreeInItsProcess(result); }
