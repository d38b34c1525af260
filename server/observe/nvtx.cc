#include "server/observe/nvtx.h"

#include <nvtx3/nvToolsExt.h>

#include <array>
#include <atomic>

namespace warpline::nvtx {
namespace {

const char* Text(Name name) {
  switch (name) {
    case Name::kConvert:
      return "convert";
    case Name::kAdmission:
      return "admission";
    case Name::kStage:
      return "stage";
    case Name::kCopy:
      return "copy";
    case Name::kLaunch:
      return "launch";
    case Name::kBuildGraph:
      return "build graph";
    case Name::kLaunchGraph:
      return "launch graph";
    case Name::kLaunchOnSlots:
      return "launch on slots";
    case Name::kLaunchInPieces:
      return "launch in pieces";
    case Name::kLaunchCalls:
      return "launch calls";
    case Name::kStep:
      return "step";
    case Name::kComplete:
      return "complete";
    case Name::kRespond:
      return "respond";
    case Name::kQueue:
      return "queue";
    case Name::kDevice:
      return "device";
    case Name::kSend:
      return "send";
  }
  return "?";
}

// A process has only one NVTX: the first call loads the profiler's tool, which then stays loaded. So there is
// also only one Domain. It is never destroyed, because threads may end ranges until the process ends.
struct Domain {
  Domain() {
    for (int i = 0; i < kNames; ++i) {
      names[i] = nvtxDomainRegisterStringA(handle, Text(static_cast<Name>(i)));
    }
  }
  nvtxDomainHandle_t handle = nvtxDomainCreateA("warpline");
  std::array<nvtxStringHandle_t, kNames> names;
};

const Domain& TheDomain() {
  static const Domain domain;
  return domain;
}

nvtxEventAttributes_t Attributes(RequestNumber request) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  if (request.value() != 0) {
    attributes.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
    attributes.payload.ullValue = request.value();
  }
  return attributes;
}

nvtxEventAttributes_t Attributes(Name name, RequestNumber request) {
  nvtxEventAttributes_t attributes = Attributes(request);
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = TheDomain().names[static_cast<std::size_t>(name)];
  return attributes;
}

nvtxEventAttributes_t Attributes(const char* text, RequestNumber request) {
  nvtxEventAttributes_t attributes = Attributes(request);
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = text;
  return attributes;
}

}  // namespace

RequestNumber RequestNumber::Next() {
  static std::atomic<std::uint64_t> last = 0;
  RequestNumber number;
  number.value_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

Range::Range(Name name, RequestNumber request) {
  const nvtxEventAttributes_t attributes = Attributes(name, request);
  nvtxDomainRangePushEx(TheDomain().handle, &attributes);
}

Range::~Range() { nvtxDomainRangePop(TheDomain().handle); }

SpanningRange::SpanningRange(Name name, RequestNumber request) {
  const nvtxEventAttributes_t attributes = Attributes(name, request);
  id_ = nvtxDomainRangeStartEx(TheDomain().handle, &attributes);
}

SpanningRange::SpanningRange(const char* name, RequestNumber request) {
  const nvtxEventAttributes_t attributes = Attributes(name, request);
  id_ = nvtxDomainRangeStartEx(TheDomain().handle, &attributes);
}

void SpanningRange::End() {
  if (id_.has_value()) nvtxDomainRangeEnd(TheDomain().handle, *id_);
  id_.reset();
}

void Mark(const char* text, RequestNumber request) {
  const nvtxEventAttributes_t attributes = Attributes(text, request);
  nvtxDomainMarkEx(TheDomain().handle, &attributes);
}

}  // namespace warpline::nvtx
