// Ranges as this build has them, with no profiler there.
#include "server/observe/nvtx.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <type_traits>

namespace warpline::nvtx {
namespace {

#ifndef WARPLINE_NVTX
// Types that are switched off take no room. The classes that hold them stay as cheap to copy and to destroy
// as they were.
static_assert(std::is_empty_v<RequestNumber> && std::is_trivial_v<RequestNumber>);
static_assert(std::is_empty_v<Range> && std::is_trivially_destructible_v<Range>);
static_assert(std::is_empty_v<SpanningRange> && std::is_trivially_destructible_v<SpanningRange> &&
              std::is_trivially_move_constructible_v<SpanningRange>);
struct Holder {
  int value;
  [[no_unique_address]] RequestNumber number;
  [[no_unique_address]] SpanningRange range;
};
static_assert(sizeof(Holder) == sizeof(int));
#endif
// One range is one scope's; one that spans threads is handed on.
static_assert(!std::is_copy_constructible_v<Range> && !std::is_move_constructible_v<Range>);
static_assert(!std::is_copy_constructible_v<SpanningRange> || std::is_empty_v<SpanningRange>);

TEST(NvtxTest, IsSafeWithoutAProfiler) {
  const RequestNumber number = RequestNumber::Next();
  const Range outer(Name::kConvert, number);
  SpanningRange moved;
  {
    const Range inner(Name::kAdmission);
    SpanningRange range("Transpose", number);
    moved = std::move(range);
  }
  Mark(std::string("an-id").c_str(), number);
  std::thread([range = std::move(moved)]() mutable {
    range.End();
    range.End();
  }).join();
}

}  // namespace
}  // namespace warpline::nvtx
