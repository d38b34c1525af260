#include "server/rpc/received_payloads.h"

#include <algorithm>
#include <utility>

namespace warpline {

ReceivedPayloads::ReceivedPayloads(MessageSlices slices, const std::vector<PayloadRange>& ranges,
                                   const Plan& plan)
    : slices_(std::move(slices)) {
  payloads_.reserve(plan.inputs.size());
  for (std::size_t i = 0; i < plan.inputs.size(); ++i) {
    if (plan.inputs[i].payload == PlannedInput::kNone) continue;
    // Leaves out the padding after the last row, which a client may send.
    PayloadRange read = ranges[plan.inputs[i].payload];
    read.length = plan.program.tensors[i].bytes;
    payloads_.push_back({read, plan.memory.tensors[i].offset});
    bytes_ += read.length;
  }
}

void ReceivedPayloads::CopyPart(std::span<std::byte> region, int part, int parts, CopySite& site) const {
  const auto border = [&](int index) {
    return bytes_ * static_cast<std::size_t>(index) / static_cast<std::size_t>(parts);
  };
  const std::size_t begin = border(part), end = border(part + 1);
  const std::vector<std::span<const std::byte>> spans = SpansOf(slices_.slices());
  std::vector<std::span<const std::byte>> pieces;
  std::size_t at = 0;  // counts the bytes of all payloads, as if they were adjacent
  for (const Payload& payload : payloads_) {
    const std::size_t first = at;
    std::size_t to = payload.offset;
    if (first < begin) to += std::min(begin - first, payload.range.length);
    pieces.clear();
    ForEachPiece(spans, payload.range, [&](std::span<const std::byte> piece) {
      const std::size_t from = std::clamp(begin, at, at + piece.size()) - at;
      const std::size_t until = std::clamp(end, at, at + piece.size()) - at;
      if (until > from) pieces.push_back(piece.subspan(from, until - from));
      at += piece.size();
    });
    if (!pieces.empty()) CopyPayload(site, region.data() + to, pieces);
  }
}

}  // namespace warpline
