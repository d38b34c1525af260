#include "server/plan/binding.h"

#include <algorithm>
#include <cstdint>

#include "kernels/align.h"

namespace warpline {

bool SharedSlicesAreAligned(std::span<const Binding> bindings) {
  return std::all_of(bindings.begin(), bindings.end(), [](const Binding& binding) {
    return binding.staged.area != Area::kShared ||
           reinterpret_cast<std::uintptr_t>(binding.memory.bytes().data()) % kTensorAlignment == 0;
  });
}

bool IsOnDevice(const Binding& binding, int num_inputs) {
  return binding.tensor < num_inputs && binding.staged.area == Area::kResident &&
         binding.memory.place().kind == Place::Kind::kDevice && !binding.memory.bytes().empty();
}

DeviceBytes OperandBytes(std::span<const Binding> bindings, int num_inputs, std::size_t devices) {
  DeviceBytes bytes(devices);
  for (const Binding& binding : bindings) {
    if (!IsOnDevice(binding, num_inputs)) continue;
    bytes[static_cast<std::size_t>(binding.memory.place().device)] += binding.memory.bytes().size();
  }
  return bytes;
}

PeerOperands FindPeerOperands(std::span<const Binding> bindings, int num_inputs, int device) {
  PeerOperands peers;
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const Buffer& memory = bindings[i].memory;
    if (!IsOnDevice(bindings[i], num_inputs) || memory.place().device == device) continue;
    const auto earlier =
        std::find_if(peers.copies.begin(), peers.copies.end(), [&](const PeerOperands::Copy& copy) {
          const std::span<std::byte> bytes = bindings[copy.binding].memory.bytes();
          return bytes.data() == memory.bytes().data() && bytes.size() == memory.bytes().size();
        });
    if (earlier != peers.copies.end()) {
      peers.copies.push_back({.binding = i, .first = earlier->first, .offset = earlier->offset});
      continue;
    }
    peers.copies.push_back({.binding = i, .first = i, .offset = peers.block_bytes});
    peers.bytes += memory.bytes().size();
    if (bindings[i].copy.bytes().empty()) {
      peers.block_bytes += AlignUp(memory.bytes().size(), kTensorAlignment);
    }
  }
  return peers;
}

Bindings MakeBindings(const MemoryPlan& plan) {
  Bindings bindings;
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (plan.tensors[i].area == Area::kScratch) continue;
    bindings.push_back({.tensor = static_cast<int>(i), .staged = plan.tensors[i]});
  }
  return bindings;
}

}  // namespace warpline
