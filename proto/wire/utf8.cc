#include "proto/wire/utf8.h"

// Since version 22 protobuf has a library of its own for this.
#if __has_include(<utf8_validity.h>)
#include <utf8_validity.h>
#else
#include "google/protobuf/stubs/common.h"
#endif

namespace warpline {

#if __has_include(<utf8_validity.h>)
bool IsUtf8(std::string_view text) { return utf8_range::IsStructurallyValid(text); }
#else
bool IsUtf8(std::string_view text) {
  return google::protobuf::internal::IsStructurallyValidUTF8(text.data(), static_cast<int>(text.size()));
}
#endif

}  // namespace warpline
