#include "server/http/gzip.h"

#include <zlib.h>

#include <cstdint>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace warpline {

std::string Gzip(std::string_view text) {
  constexpr int kGzipFormat = MAX_WBITS + 16, kMemory = 8;
  z_stream stream = {};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipFormat, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  const absl::Cleanup end = [&stream] { deflateEnd(&stream); };
  std::string zipped(deflateBound(&stream, text.size()), '\0');
  // zlib does not write to its input.
  stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(zipped.data());
  stream.avail_out = static_cast<uInt>(zipped.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) return {};
  zipped.resize(stream.total_out);
  return zipped;
}

bool AcceptsGzip(std::string_view accept_encoding) {
  bool any_other = false;  // what "*" says, which counts where gzip is not named
  for (const absl::string_view item :
       absl::StrSplit(absl::string_view(accept_encoding.data(), accept_encoding.size()), ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(item, ';');
    const absl::string_view coding = absl::StripAsciiWhitespace(parts[0]);
    if (!absl::EqualsIgnoreCase(coding, "gzip") && coding != "*") continue;
    double weight = 1;
    for (std::size_t i = 1; i < parts.size(); ++i) {
      absl::string_view parameter = absl::StripAsciiWhitespace(parts[i]);
      if (absl::StartsWithIgnoreCase(parameter, "q=") && !absl::SimpleAtod(parameter.substr(2), &weight))
        weight = 0;
    }
    if (coding != "*") return weight > 0;
    any_other = weight > 0;
  }
  return any_other;
}

}  // namespace warpline
