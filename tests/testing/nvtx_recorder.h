// A profiler for tests: linked into a binary, it gets every NVTX call made there and keeps it.
#ifndef WARPLINE_TESTS_TESTING_NVTX_RECORDER_H_
#define WARPLINE_TESTS_TESTING_NVTX_RECORDER_H_

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace warpline {

struct NvtxEvent {
  enum class Kind { kPush, kPop, kStart, kEnd, kMark };
  Kind kind;
  std::string domain;
  std::string text;           // of a pop or an end: of the range that it closes, empty if there is none
  bool registered = false;    // whether the text was handed over before
  std::uint64_t payload = 0;  // 0 if there is none
  std::thread::id thread;
};

// Returns what has happened since the last call, in order.
std::vector<NvtxEvent> TakeNvtxEvents();

// Ranges that have begun, on any thread, and not ended.
int OpenNvtxRanges();

}  // namespace warpline

#endif  // WARPLINE_TESTS_TESTING_NVTX_RECORDER_H_
