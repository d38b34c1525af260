// Log lines in logfmt on stderr: time=... level=... msg="..." key=value ...
#ifndef WARPLINE_SERVER_OBSERVE_LOG_H_
#define WARPLINE_SERVER_OBSERVE_LOG_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace warpline {

// Thread-safe; one line is one write. Values are quoted where logfmt asks for it.
void Log(std::string_view level, std::string_view message,
         std::initializer_list<std::pair<std::string_view, std::string>> fields = {});

}  // namespace warpline

#endif  // WARPLINE_SERVER_OBSERVE_LOG_H_
