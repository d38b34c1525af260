#include "tests/testing/nvtx_recorder.h"

#include <cstdint>

// NVTX finds a profiler that is part of the program by this pointer, which it defines weakly unless told not
// to.
extern "C" int (*InitializeInjectionNvtx2_fnptr)(const void* (*)(std::uint32_t));
#define NVTX_STATIC_INJECTION_IMPL
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

namespace warpline {
namespace {

using Kind = NvtxEvent::Kind;

struct Recorder {
  std::mutex mutex;
  std::deque<std::string> domains, strings;  // handles are addresses of elements
  std::map<std::thread::id, std::vector<NvtxEvent>> pushed;
  std::map<nvtxRangeId_t, NvtxEvent> started;
  nvtxRangeId_t next_id = 0;  // 0 is an id like any other
  std::vector<NvtxEvent> events;
};

Recorder& TheRecorder() {
  static auto* const recorder = new Recorder;  // threads may end ranges after main
  return *recorder;
}

NvtxEvent Event(Kind kind, nvtxDomainHandle_t domain, const nvtxEventAttributes_t& from) {
  NvtxEvent event{.kind = kind, .thread = std::this_thread::get_id()};
  event.domain = *reinterpret_cast<const std::string*>(domain);
  event.registered = from.messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  event.text = event.registered ? *reinterpret_cast<const std::string*>(from.message.registered)
                                : std::string(from.message.ascii);
  if (from.payloadType == NVTX_PAYLOAD_TYPE_UNSIGNED_INT64) event.payload = from.payload.ullValue;
  return event;
}

// The end of a range that has begun; empty if none has.
NvtxEvent Closing(Kind kind, NvtxEvent range) {
  range.kind = kind;
  range.thread = std::this_thread::get_id();
  return range;
}

nvtxDomainHandle_t NVTX_API CreateDomain(const char* name) {
  Recorder& recorder = TheRecorder();
  const std::lock_guard lock(recorder.mutex);
  return reinterpret_cast<nvtxDomainHandle_t>(&recorder.domains.emplace_back(name));
}

nvtxStringHandle_t NVTX_API RegisterString(nvtxDomainHandle_t, const char* text) {
  Recorder& recorder = TheRecorder();
  const std::lock_guard lock(recorder.mutex);
  return reinterpret_cast<nvtxStringHandle_t>(&recorder.strings.emplace_back(text));
}

int NVTX_API Push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  Recorder& recorder = TheRecorder();
  const std::lock_guard lock(recorder.mutex);
  const NvtxEvent& event = recorder.events.emplace_back(Event(Kind::kPush, domain, *attributes));
  std::vector<NvtxEvent>& stack = recorder.pushed[event.thread];
  stack.push_back(event);
  return static_cast<int>(stack.size()) - 1;
}

int NVTX_API Pop(nvtxDomainHandle_t) {
  Recorder& recorder = TheRecorder();
  const std::lock_guard lock(recorder.mutex);
  std::vector<NvtxEvent>& stack = recorder.pushed[std::this_thread::get_id()];
  recorder.events.push_back(Closing(Kind::kPop, stack.empty() ? NvtxEvent() : stack.back()));
  if (!stack.empty()) stack.pop_back();
  return static_cast<int>(stack.size());
}

nvtxRangeId_t NVTX_API Start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  Recorder& recorder = TheRecorder();
  const std::lock_guard lock(recorder.mutex);
  recorder.started[recorder.next_id] = recorder.events.emplace_back(Event(Kind::kStart, domain, *attributes));
  return recorder.next_id++;
}

void NVTX_API End(nvtxDomainHandle_t, nvtxRangeId_t id) {
  Recorder& recorder = TheRecorder();
  const std::lock_guard lock(recorder.mutex);
  const auto found = recorder.started.find(id);
  recorder.events.push_back(
      Closing(Kind::kEnd, found == recorder.started.end() ? NvtxEvent() : found->second));
  if (found != recorder.started.end()) recorder.started.erase(found);
}

void NVTX_API MarkInstant(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  Recorder& recorder = TheRecorder();
  const std::lock_guard lock(recorder.mutex);
  recorder.events.push_back(Event(Kind::kMark, domain, *attributes));
}

// Called by NVTX before the first of the other functions.
int NVTX_API Attach(NvtxGetExportTableFunc_t table_of) {
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(table_of(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned size = 0;
  if (callbacks == nullptr || callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) {
    return 0;
  }
  const auto set = [table](NvtxCallbackIdCore2 id, auto* function) {
    *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
  };
  set(NVTX_CBID_CORE2_DomainCreateA, CreateDomain);
  set(NVTX_CBID_CORE2_DomainRegisterStringA, RegisterString);
  set(NVTX_CBID_CORE2_DomainRangePushEx, Push);
  set(NVTX_CBID_CORE2_DomainRangePop, Pop);
  set(NVTX_CBID_CORE2_DomainRangeStartEx, Start);
  set(NVTX_CBID_CORE2_DomainRangeEnd, End);
  set(NVTX_CBID_CORE2_DomainMarkEx, MarkInstant);
  return 1;
}

}  // namespace

std::vector<NvtxEvent> TakeNvtxEvents() {
  Recorder& recorder = TheRecorder();
  const std::lock_guard lock(recorder.mutex);
  return std::exchange(recorder.events, {});
}

int OpenNvtxRanges() {
  Recorder& recorder = TheRecorder();
  const std::lock_guard lock(recorder.mutex);
  std::size_t open = recorder.started.size();
  for (const auto& [thread, stack] : recorder.pushed) open += stack.size();
  return static_cast<int>(open);
}

}  // namespace warpline

NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = warpline::Attach;
