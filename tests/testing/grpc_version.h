// The version of gRPC that the tests are built with: some facts are those of one version.
#ifndef WARPLINE_TESTS_TESTING_GRPC_VERSION_H_
#define WARPLINE_TESTS_TESTING_GRPC_VERSION_H_

#include <grpcpp/version_info.h>

#include <string_view>

namespace warpline::testing {

inline constexpr bool kIsGrpc151 = std::string_view(GRPC_CPP_VERSION_STRING).starts_with("1.51.");

}  // namespace warpline::testing

#endif  // WARPLINE_TESTS_TESTING_GRPC_VERSION_H_
