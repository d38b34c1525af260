// What was built, for --version and GetInfo. cmake/WarplineVersion.cmake makes the other half.
#ifndef WARPLINE_CMAKE_VERSION_H_
#define WARPLINE_CMAKE_VERSION_H_

namespace warpline {

extern const char kVersion[];   // "0.1.0"
extern const char kRevision[];  // of git, "b5af04a12345", "-dirty" after it if files were changed; or "unknown"

}  // namespace warpline

#endif  // WARPLINE_CMAKE_VERSION_H_
