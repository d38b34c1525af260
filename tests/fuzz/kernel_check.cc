#include "tests/fuzz/kernel_check.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/device/cpu_backend.h"
#include "server/plan/bad_index_error.h"
#include "server/rpc/copy_plan.h"
#include "server/rpc/received_payloads.h"
#include "server/rpc/region_slices.h"
#include "server/rpc/result_sinks.h"
#include "tests/fuzz/documented_error.h"
#include "tests/fuzz/exact_memory.h"
#include "tests/fuzz/exact_run.h"
#include "tests/fuzz/plan_text.h"
#include "tests/testing/wire_agreement.h"

namespace warpline::testing {
namespace {

constexpr OwnerId kOwner = 1;
constexpr std::size_t kRegionBytes = 4096;
constexpr std::size_t kStagingBytes = std::size_t{2} << 20;
// Each is the first one that some request exceeds.
constexpr Limits kLimits{.max_inline_bytes = 4 << 20, .max_device_seconds = 0.01};

std::unique_ptr<Backend> MakeBackend() {
  // Slices need what any server or channel readies.
  static const auto channel = grpc::CreateChannel("unix:nobody", grpc::InsecureChannelCredentials());
  auto backend = CreateCpuBackend({.lane_bytes = 1 << 20, .timing = false});
  if (!backend.ok()) std::abort();  // it only fails for want of memory
  return *std::move(backend);
}

absl::StatusOr<Buffer> AllocateExactly(int, std::size_t bytes) { return ExactMemory(bytes); }

// Another value of the same class (scalar_class.h).
double Twin(double value) {
  if (value == 0) return -0.0;
  if (static_cast<float>(value) == 0) return value == 1e-200 ? 2e-200 : 1e-200;
  constexpr double kExact = 9007199254740992;
  if (!(value >= -kExact && value <= kExact) ||
      static_cast<double>(static_cast<std::int64_t>(value)) != value) {
    return value == 0.25 ? -1e100 : 0.25;
  }
  if (value >= -2147483648. && value <= 2147483647.) return value == 17 ? -5 : 17;
  return value == 4294967296. ? -4294967297. : 4294967296.;
}

// Returns whether the tensor is a result of which only the first rows are there.
bool HasOpenSize(const Plan& plan, int tensor) {
  for (std::size_t i = 0; i < plan.counts.size(); ++i) {
    if (plan.counts[i] != Plan::kNoCount && plan.program.outputs[i] == tensor) return true;
  }
  return false;
}

// The sizes that a program has found must be possible, and give a plan.
std::string FlawOfCopies(const Plan& plan, std::span<const std::byte> output) {
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < plan.counts.size(); ++i) {
    std::int64_t size = 0;
    if (plan.counts[i] != Plan::kNoCount) {
      std::memcpy(&size, output.data() + plan.counts[i], sizeof(size));
      if (size < 0 || size > plan.outputs[i].spec.shape[0]) return absl::StrCat("a size of ", size);
    }
    sizes.push_back(size);
  }
  const absl::StatusOr<Plan> copies =
      CopyPlan(plan, FoundSpecs(plan, sizes), std::vector<bool>(sizes.size()), kLimits);
  if (absl::IsInvalidArgument(copies.status())) return "";
  if (!copies.ok()) return copies.status().ToString();
  if (copies->HostBytes() <= plan.copied_bytes) return "";
  return absl::StrCat("copies of ", copies->HostBytes(), " bytes, of which ", plan.copied_bytes,
                      " are admitted");
}

}  // namespace

struct KernelCheck::Request {
  const Codec& codec;
  std::vector<grpc::Slice> slices;
  ScannedMessage message = {};
  References references = {};
  std::vector<Buffer> referred = {};
  std::string key = {};
};

KernelCheck::KernelCheck()
    : backend_(MakeBackend()),
      admission_({.max_jobs = 16, .max_bytes = 3 << 20}, metrics_),
      staging_(kStagingBytes + 4096),
      pool_({reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(staging_.data()) + 4095) / 4096 *
                                          4096),
             kStagingBytes},
            256 << 10, metrics_),
      tensors_({.device_bytes = {std::size_t{1} << 20}}, AllocateExactly, metrics_),
      regions_({.max_bytes = 32 * kRegionBytes, .max_regions = 16, .max_regions_per_owner = 16}, metrics_),
      compiler_(kLimits, {*backend_, admission_, pool_}),
      codecs_(KernelCodecs()),
      site_(metrics_, "stage_in") {
  auto lane = backend_->CreateLane(0);
  if (!lane.ok()) std::abort();
  lane_ = *std::move(lane);
  const auto spec = [](DType dtype, const Shape& shape) {
    return TensorSpec{dtype, shape, static_cast<std::size_t>(shape.Count()) * SizeOf(dtype)};
  };
  AddTensor("t0", spec(DType::kF32, {4, 4}));
  AddTensor("t1", spec(DType::kF32, {4, 4}));
  AddTensor("t2", spec(DType::kF64, {3, 5}));
  AddTensor("t3", spec(DType::kI8, {2, 3, 4}));
  AddTensor("t4", spec(DType::kBF16, {8}));
  AddTensor("t5", spec(DType::kF32, {}));
  AddTensor("t6", spec(DType::kF32, {0, 4}));
  AddTensor("t7", spec(DType::kBool, {2, 1, 1, 2, 1, 1, 1, 2}));
  AddTensor("t8", spec(DType::kF16, {64, 64}));
  AddTensor("t9", spec(DType::kC128, {2, 2}));
  AddTensor("late", spec(DType::kF32, {4, 4}));
  static_cast<void>(tensors_.Drop(kOwner, ids_["late"]));
  const auto half = tensors_.Create(CallerWith(kOwner), spec(DType::kF32, {4, 4}), absl::Hours(1), 0);
  if (!half.ok()) std::abort();
  ids_["half"] = half->id;
  for (const char* name : {"r0", "r1", "r2"}) AddRegion(name);
  regions_.Withdraw(ids_["r2"], 1, [] {});
}

KernelCheck::~KernelCheck() {
  for (const char* name : {"r0", "r1", "r2"}) regions_.Remove(ids_[name]);
}

void KernelCheck::AddTensor(const std::string& name, const TensorSpec& spec) {
  absl::StatusOr<Buffer> memory = tensors_.Allocate(CallerWith(kOwner), 0, spec.bytes);
  if (!memory.ok()) std::abort();
  std::fill(memory->bytes().begin(), memory->bytes().end(), std::byte{1});
  ids_[name] = tensors_.Add(kOwner, spec, absl::Hours(1), *std::move(memory)).id;
}

void KernelCheck::AddRegion(const std::string& name) {
  const Buffer memory = ExactMemory(kRegionBytes);
  ids_[name] = regions_.Add(
      kOwner, Buffer(memory.bytes(), {.kind = Place::Kind::kPinned}, std::make_shared<Buffer>(memory)));
  region_memory_.push_back(memory);
}

void KernelCheck::Resolve(Request& request) {
  for (Reference& reference : request.message.references) {
    if (const auto id = ids_.find(reference.text); id != ids_.end()) reference.text = id->second;
    if (static_cast<ReferenceKind>(reference.field) == ReferenceKind::kRegion) {
      request.references.emplace_back(TensorSpec());
      request.referred.emplace_back();
      continue;
    }
    absl::StatusOr<TensorStore::Reading> reading = tensors_.Read(kOwner, reference.text);
    request.references.push_back(reading.ok() ? absl::StatusOr<TensorSpec>(reading->info.spec)
                                              : reading.status());
    request.referred.push_back(reading.ok() ? std::move(reading->memory) : Buffer());
  }
  request.key = PlanKey(request.codec.kind, request.message, request.references);
}

std::string KernelCheck::CheckTwin(const Request& request, const absl::StatusOr<PlanPtr>& plan) {
  // All payload bytes change, and the slicing too.
  std::string bytes;
  std::vector<std::size_t> begins;  // of the slices
  for (const grpc::Slice& slice : request.slices) {
    begins.push_back(bytes.size());
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  for (const PayloadRange& payload : request.message.payloads) {
    if (payload.length == 0) continue;
    const std::size_t begin = begins[payload.slice] + payload.offset;
    for (std::size_t i = begin; i < begin + payload.length; ++i)
      bytes[i] = static_cast<char>(bytes[i] ^ 0x5a);
  }
  Request twin{.codec = request.codec, .slices = {grpc::Slice(bytes)}};
  absl::StatusOr<ScannedMessage> scanned = ScanMessage(twin.codec.schema, SpansOf(twin.slices));
  if (!scanned.ok()) return absl::StrCat("with other elements: ", scanned.status().ToString());
  twin.message = *std::move(scanned);
  for (double& scalar : twin.message.scalars) scalar = Twin(scalar);
  for (std::int64_t& integer : twin.message.integers) integer ^= 16;
  for (Reference& reference : twin.message.references) {
    if (reference.text == "t0") reference.text = "t1";
  }
  Resolve(twin);
  if (twin.key != request.key) return "another key with other elements and values";
  const absl::StatusOr<PlanPtr> other = compiler_.Compile(twin.codec, twin.message, twin.references);
  if (other.status().code() != plan.status().code()) {
    return absl::StrCat("one key, but ", plan.status().ToString(), " and ", other.status().ToString());
  }
  if (plan.ok() && Describe(**other) != Describe(**plan)) {
    return absl::StrCat("one key, but the plans\n", Describe(**plan), "\n", Describe(**other));
  }
  return "";
}

std::string KernelCheck::CheckStrangers(const Request& request, const absl::StatusOr<PlanPtr>& plan) {
  if (!plan.ok()) return "";
  Request other{.codec = request.codec, .message = request.message};
  const auto differs = [&] {
    other.references.clear();
    other.referred.clear();
    Resolve(other);
    if (other.key != request.key) return false;
    const absl::StatusOr<PlanPtr> compiled = compiler_.Compile(other.codec, other.message, other.references);
    return !compiled.ok() || Describe(**compiled) != Describe(**plan);
  };
  for (double& scalar : other.message.scalars) {
    const double original = scalar;
    for (const double value : {0., 3., 4294967296., 1e-200, 0.25}) {
      scalar = value;
      if (differs()) return absl::StrCat("one key for ", original, " and ", value, " in ", Describe(**plan));
    }
    scalar = original;
  }
  for (Reference& reference : other.message.references) {
    const std::string original = std::exchange(reference.text, ids_["t2"]);
    if (differs()) return absl::StrCat("one key for tensors of two shapes in ", Describe(**plan));
    reference.text = original;
  }
  for (PayloadRange& payload : other.message.payloads) {
    ++payload.length;
    if (differs()) return absl::StrCat("one key for payloads of two lengths in ", Describe(**plan));
    --payload.length;
  }
  return "";
}

std::string KernelCheck::CheckEarlier(const Request& request, const absl::StatusOr<PlanPtr>& plan) {
  constexpr std::size_t kMaxKeys = 4096;
  if (earlier_.size() >= kMaxKeys) earlier_.clear();
  // Only plans are kept under their keys. Errors may differ, as those of tensors that are not there do.
  const std::string what = plan.ok() ? Describe(**plan) : "refused";
  const std::size_t hash = std::hash<std::string>()(what);
  const auto [entry, is_new] = earlier_.try_emplace(request.key, hash);
  return is_new || entry->second == hash ? "" : absl::StrCat("an earlier request of this key was not ", what);
}

std::string KernelCheck::Check(RequestKind kind, std::string_view message,
                               std::span<const std::size_t> slice_sizes) {
  ++counts_.messages;
  Request request{.codec = codecs_[static_cast<std::size_t>(kind)]};
  for (const std::span<const std::byte> slice : Slice(message, slice_sizes)) {
    request.slices.emplace_back(slice.data(), slice.size());
  }
  absl::StatusOr<ScannedMessage> scanned = ScanMessage(request.codec.schema, SpansOf(request.slices));
  if (!scanned.ok()) return FlawOfError(scanned.status());
  request.message = *std::move(scanned);
  Resolve(request);
  const absl::StatusOr<PlanPtr> plan = compiler_.Compile(request.codec, request.message, request.references);
  if (std::string flaw = CheckTwin(request, plan); !flaw.empty()) return flaw;
  if (std::string flaw = CheckStrangers(request, plan); !flaw.empty()) return flaw;
  if (std::string flaw = CheckEarlier(request, plan); !flaw.empty()) return flaw;
  if (!plan.ok()) return FlawOfError(plan.status());
  ++counts_.planned;
  const ScannedMessage& parts = request.message;
  if (std::string flaw = FindFlaw(**plan, {.payloads = parts.payloads.size(),
                                           .scalars = parts.scalars.size(),
                                           .integers = parts.integers.size(),
                                           .references = parts.references.size()});
      !flaw.empty()) {
    return absl::StrCat(flaw, " in ", Describe(**plan));
  }
  return Run(request, **plan);
}

std::string KernelCheck::Run(const Request& request, const Plan& plan) {
  const absl::StatusOr<ResultSinks> sinks = SinksOf(plan, request.message, tensors_);
  if (!sinks.ok()) return FlawOfError(sinks.status());
  Bindings bindings = MakeBindings(plan.memory);
  if (const absl::Status bound = BindSlices(plan, request.message, kOwner, regions_, bindings); !bound.ok()) {
    return FlawOfError(bound);
  }
  if (!IsCheap(plan)) return "";
  ++counts_.run;
  std::vector<Buffer> uploads(plan.num_uploads);
  for (Binding& binding : bindings) {
    if (binding.staged.area != Area::kResident) continue;
    const auto tensor = static_cast<std::size_t>(binding.tensor);
    const std::size_t bytes = plan.program.tensors[tensor].bytes;
    if (binding.tensor >= plan.program.num_inputs) {
      binding.memory = ExactMemory(bytes);
    } else if (plan.inputs[tensor].upload == PlannedInput::kNone) {
      binding.memory = request.referred[plan.inputs[tensor].reference];
    } else {
      Buffer& upload = uploads.at(plan.inputs[tensor].upload);
      if (upload.bytes().empty()) {
        upload = ExactMemory(bytes);
        std::fill(upload.bytes().begin(), upload.bytes().end(), std::byte{1});
      }
      binding.memory = upload;
    }
    if (binding.memory.bytes().size() != plan.program.tensors[tensor].bytes)
      return "a tensor of another size";
  }
  const ScalarValues scalars = ScalarsOf(plan.scalars, request.message.scalars);

  // Copies of all inputs, before anything is written: slices for inputs may overlap one another.
  std::vector<Buffer> exact;
  const std::vector<std::span<const std::byte>> spans = SpansOf(request.slices);
  for (std::size_t i = 0; i < plan.program.tensors.size(); ++i) {
    const auto binding = std::find_if(bindings.begin(), bindings.end(),
                                      [&](const Binding& b) { return b.tensor == static_cast<int>(i); });
    const bool has_own = binding != bindings.end() && !binding->memory.bytes().empty();
    exact.push_back(ExactMemory(
        plan.program.tensors[i].bytes,
        has_own ? reinterpret_cast<std::uintptr_t>(binding->memory.bytes().data()) % kTensorAlignment : 0));
    if (i >= plan.inputs.size()) continue;
    std::byte* to = exact.back().bytes().data();
    if (has_own) std::copy(binding->memory.bytes().begin(), binding->memory.bytes().end(), to);
    if (plan.inputs[i].payload == PlannedInput::kNone) continue;
    PayloadRange payload = request.message.payloads[plan.inputs[i].payload];
    // The padding of the last row may follow, and is not read.
    if (payload.length < plan.program.tensors[i].bytes) return "a payload shorter than its tensor";
    payload.length = plan.program.tensors[i].bytes;
    ForEachPiece(spans, payload,
                 [&](std::span<const std::byte> piece) { to = std::copy(piece.begin(), piece.end(), to); });
  }
  std::vector<std::vector<std::byte>> regions_before;
  for (const Buffer& region : region_memory_) {
    regions_before.emplace_back(region.bytes().begin(), region.bytes().end());
  }

  const Buffer input = ExactMemory(plan.memory.input_bytes), output = ExactMemory(plan.memory.output_bytes);
  const ReceivedPayloads payloads(MessageSlices(request.slices), request.message.payloads, plan);
  for (int part = 0; part < 3; ++part) payloads.CopyPart(input.bytes(), part, 3, site_);
  for (std::size_t i = 0, next = 0; i < plan.program.steps.size(); ++i) {
    const auto count = static_cast<std::size_t>(ScalarCount(plan.program.steps[i].problem));
    if (count == 0) continue;
    std::memcpy(input.bytes().data() + plan.memory.scalars[i], &scalars.at(next),
                count * sizeof(StepScalars));
    next += count;
  }
  std::optional<LaunchReport> report;
  lane_->Launch({.program = &plan.program,
                 .plan = &plan.memory,
                 .compiled = plan.compiled.get(),
                 .bindings = bindings,
                 .input = input.bytes(),
                 .output = output.bytes()},
                [&](LaunchReport done) { report = std::move(done); });
  if (!report.has_value()) return "a lane that does not end";
  if (HasIndices(plan.program) && absl::IsInvalidArgument(report->status)) return "";
  if (!report->status.ok()) return absl::StrCat("a lane fails: ", report->status.ToString());
  RunExactly(plan, scalars, exact);

  for (const Binding& binding : bindings) {
    if (binding.tensor < plan.program.num_inputs) continue;
    if (HasOpenSize(plan, binding.tensor)) continue;
    const std::span<const std::byte> wanted = exact[static_cast<std::size_t>(binding.tensor)].bytes();
    const std::span<const std::byte> result =
        binding.staged.area == Area::kOutput
            ? std::span<const std::byte>(output.bytes()).subspan(binding.staged.offset, wanted.size())
            : binding.memory.bytes();
    if (!std::equal(wanted.begin(), wanted.end(), result.begin(), result.end())) {
      return absl::StrCat("a lane computes other bits of tensor ", binding.tensor, " of ", Describe(plan));
    }
    if (binding.staged.area != Area::kShared) continue;
    // The result may be written to this part of a region, so it is copied into the expected content.
    for (std::size_t i = 0; i < region_memory_.size(); ++i) {
      const std::ptrdiff_t at = result.data() - region_memory_[i].bytes().data();
      if (at < 0 || static_cast<std::size_t>(at) + result.size() > kRegionBytes) continue;
      std::copy(result.begin(), result.end(), regions_before[i].begin() + at);
    }
  }
  for (std::size_t i = 0; i < region_memory_.size(); ++i) {
    if (!std::equal(regions_before[i].begin(), regions_before[i].end(), region_memory_[i].bytes().begin())) {
      return absl::StrCat("region ", i, " changed beside the results of ", Describe(plan));
    }
  }

  if (plan.IsCounted()) return FlawOfCopies(plan, output.bytes());
  std::vector<v1::Tensor> placed;
  for (const ResultSink& sink : *sinks) {
    v1::Tensor& tensor = placed.emplace_back();
    if (sink.slice.id().empty()) {
      tensor.mutable_resident()->set_id("new");
    } else {
      *tensor.mutable_region() = sink.slice;
    }
  }
  v1::Execution execution;
  execution.set_request_id("fuzz");
  return CompareResponse(
      request, plan, output.bytes(),
      request.codec.encode({.outputs = plan.outputs, .placed = placed, .execution = execution}));
}

std::string KernelCheck::CompareResponse(const Request& request, const Plan& plan,
                                         std::span<const std::byte> output,
                                         const std::vector<std::string>& headers) {
  if (headers.size() < plan.outputs.size()) return "a response of too few parts";
  std::string bytes;
  std::vector<std::string> elements;
  for (std::size_t i = 0; i < headers.size(); ++i) {
    bytes += headers[i];
    if (i >= plan.outputs.size()) continue;
    elements.emplace_back();
    if (plan.outputs[i].is_inline()) {
      elements.back().assign(reinterpret_cast<const char*>(output.data()) + plan.outputs[i].offset,
                             plan.outputs[i].spec.bytes);
    }
    bytes += elements.back();
  }
  const auto compare = [&](const v1::Tensor& tensor, std::size_t i) {
    const bool same =
        tensor.shape_size() == plan.outputs[i].spec.shape.rank && tensor.inline_() == elements[i];
    return same ? "" : "a response of other elements";
  };
  if (request.codec.kind != RequestKind::kRun) {
    // All have the tensor at the same number.
    v1::TransposeResponse response;
    return response.ParseFromString(bytes) ? compare(response.y(), 0) : "a response that nobody can read";
  }
  v1::RunResponse response;
  if (!response.ParseFromString(bytes)) return "a response that nobody can read";
  if (response.outputs_size() != static_cast<int>(plan.outputs.size())) return "a response of other outputs";
  for (int i = 0; i < response.outputs_size(); ++i) {
    const auto index = static_cast<std::size_t>(i);
    if (response.outputs(i).name() != plan.outputs[index].name) return "a response of other names";
    if (std::string flaw = compare(response.outputs(i).tensor(), index); !flaw.empty()) return flaw;
  }
  return "";
}

}  // namespace warpline::testing
