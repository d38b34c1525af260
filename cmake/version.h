// The version and revision of this build, for --version and GetInfo. cmake/WarplineVersion.cmake writes the
// definitions.
#ifndef WARPLINE_CMAKE_VERSION_H_
#define WARPLINE_CMAKE_VERSION_H_

namespace warpline {

extern const char kVersion[];  // "0.1.0"
// The git commit, such as "b5af04a12345", followed by "-dirty" if files were changed; or "unknown".
extern const char kRevision[];

}  // namespace warpline

#endif  // WARPLINE_CMAKE_VERSION_H_
