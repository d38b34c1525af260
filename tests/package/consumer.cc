// Uses the client library as another project would: transposes a matrix on a server.
//
// Usage: consumer ADDRESS. Prints the result and exits with 0, or prints the error and exits with 1.
#include <warpline/array.h>
#include <warpline/client.h>
#include <warpline/error.h>
#include <warpline/options.h>
#include <warpline/program.h>
#include <warpline/requests.h>
#include <warpline/tensor.h>
#include <warpline/v1/warpline.grpc.pb.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: consumer ADDRESS\n");
    return 2;
  }
  warpline::client::Client client(argv[1], {});
  const float x[2][3] = {{1, 2, 3}, {4, 5, 6}};
  const auto result = client.Transpose({.x = {.dtype = warpline::DType::kF32, .shape = {2, 3}, .data = x}},
                                       absl::Seconds(10));
  if (!result.ok()) {
    std::fprintf(stderr, "%s\n", warpline::client::Describe(result.status()).c_str());
    return 1;
  }
  const auto* y = static_cast<const float*>(result->array.data());
  for (int row = 0; row < 3; ++row) std::printf("%g %g\n", y[2 * row], y[2 * row + 1]);
  return 0;
}
