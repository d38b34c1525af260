#include "server/store/placement.h"

#include <limits>
#include <utility>
#include <vector>

#include "server/plan/binding.h"
#include "server/schedule/choose_device.h"

namespace warpline {

JobPlacement::JobPlacement(const Parts& parts, const Caller& caller, const Job& job, const Plan& plan)
    : parts_(parts) {
  const int num_inputs = plan.program.num_inputs;
  const std::size_t devices = parts.backend.devices().size();
  DeviceBytes present = OperandBytes(job.bindings, num_inputs, devices);
  std::size_t bytes = 0;
  for (const std::size_t there : present) bytes += there;
  if (bytes == 0 && job.sink_bytes == 0) return;
  if (devices == 1) {
    device_ = 0;
    return;
  }
  const Binding* largest = nullptr;
  for (const Binding& binding : job.bindings) {
    if (!IsOnDevice(binding, num_inputs)) continue;
    const std::size_t own = binding.memory.bytes().size();
    for (const int device : parts.replicas.DevicesOf(binding.memory)) {
      present[static_cast<std::size_t>(device)] += own;
    }
    if (largest == nullptr || own > largest->memory.bytes().size()) largest = &binding;
  }
  if (job.sink_bytes > 0) {
    device_ = parts.tensors.DeviceFor(caller, job.sink_bytes, present);
    return;
  }
  std::vector<DeviceView> views;
  for (std::size_t i = 0; i < devices; ++i) {
    const DeviceInfo& device = parts.backend.devices()[i];
    DeviceView& view = views.emplace_back();
    view.copy_bytes_per_second = device.peer_bytes_per_second;
    if (device.pool_bytes < plan.device_bytes) {  // the job would be refused there
      view.busy_seconds = std::numeric_limits<double>::infinity();
      continue;
    }
    view.operand_bytes = present[i];
    view.busy_seconds = parts.load.Seconds(static_cast<int>(i));
  }
  device_ = DeviceWithMostBytes(views);
  if (plan.Streams()) return;  // its uploads decide
  const int first = DeviceThatEndsFirst(views, bytes);
  if (parts.replicas.ShouldLeave(largest->memory, first != *device_)) earlier_ = first;
}

bool JobPlacement::AppliesAtOnce(const Job& job, int num_inputs) const {
  if (!device_.has_value()) return true;
  const int device = earlier_.value_or(*device_);
  std::size_t missing = 0;
  for (const PeerOperands::Copy& copy : FindPeerOperands(job.bindings, num_inputs, device).copies) {
    const Buffer& home = job.bindings[copy.binding].memory;
    if (parts_.replicas.MayMake(home, device)) missing += home.bytes().size();
  }
  return missing == 0 || parts_.backend.HasResidentAtHand(device, missing);
}

bool JobPlacement::Bind(Job& job, int num_inputs, int device, bool all) {
  Bindings bindings = job.bindings;
  std::vector<Replicas::Making> made;
  bool complete = true;
  for (const PeerOperands::Copy& copy : FindPeerOperands(bindings, num_inputs, device).copies) {
    Binding& binding = bindings[copy.binding];
    if (Buffer replica = parts_.replicas.Find(binding.memory, device); !replica.bytes().empty()) {
      binding.memory = std::move(replica);
      continue;
    }
    if (copy.first != copy.binding) continue;  // uses the copy of the other binding
    std::optional<Replicas::Making> making = parts_.replicas.Make(binding.memory, device);
    if (!making.has_value()) {
      if (all) return false;
      complete = false;
      continue;
    }
    binding.copy = making->memory();
    made.push_back(*std::move(making));
  }
  job.bindings = std::move(bindings);
  if (!made.empty()) {
    job.copied = [made = std::move(made)]() mutable {
      for (Replicas::Making& making : made) making.Complete();
    };
  }
  return complete;
}

void JobPlacement::Apply(Job& job, int num_inputs) {
  if (!device_.has_value()) return;
  job.device = device_;
  if (parts_.backend.devices().size() == 1) return;
  if (earlier_.has_value() && Bind(job, num_inputs, *earlier_, /*all=*/true)) {
    job.device = earlier_;
  } else {
    static_cast<void>(Bind(job, num_inputs, *device_, /*all=*/false));
  }
  const PeerOperands peers = FindPeerOperands(job.bindings, num_inputs, *job.device);
  job.block_bytes = peers.block_bytes;
  if (peers.bytes == 0) return;
  const double rate = parts_.backend.devices()[static_cast<std::size_t>(*job.device)].peer_bytes_per_second;
  job.peer_bytes = peers.bytes;
  job.peer_seconds = static_cast<double>(peers.bytes) / rate;
}

}  // namespace warpline
