// Compression of answers over HTTP.
#ifndef WARPLINE_SERVER_HTTP_GZIP_H_
#define WARPLINE_SERVER_HTTP_GZIP_H_

#include <string>
#include <string_view>

namespace warpline {

// Returns the text in the format of gzip (RFC 1952), fast rather than small; empty without memory.
std::string Gzip(std::string_view text);

// Returns whether a client with this Accept-Encoding takes gzip: it or "*" is named, and not with "q=0".
bool AcceptsGzip(std::string_view accept_encoding);

}  // namespace warpline

#endif  // WARPLINE_SERVER_HTTP_GZIP_H_
