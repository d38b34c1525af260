// What was built, for --version and GetInfo. cmake/WarplineVersion.cmake makes the other half.
#ifndef WARPLINE_CMAKE_VERSION_H_
#define WARPLINE_CMAKE_VERSION_H_

namespace warpline {

extern const char kVersion[];  // "0.1.0"
// Of git, "b5af04a12345", with "-dirty" behind it if files were changed; or "unknown".
extern const char kRevision[];

}  // namespace warpline

#endif  // WARPLINE_CMAKE_VERSION_H_
