// The kind of a request in metrics and logs.
#ifndef WARPLINE_SERVER_OBSERVE_REQUEST_KIND_H_
#define WARPLINE_SERVER_OBSERVE_REQUEST_KIND_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace warpline {

// A program of one such step, by whichever method it was sent, or any other program (kRun). Until a request
// has been parsed, its kind is that of its method.
enum class RequestKind : std::uint8_t { kTranspose, kGemm, kReduce, kRun };
inline constexpr std::array kAllRequestKinds = {RequestKind::kTranspose, RequestKind::kGemm,
                                                RequestKind::kReduce, RequestKind::kRun};
std::string_view Name(RequestKind kind);

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_REQUEST_KIND_H_
