// Uses the client library as somebody else would. Nothing listens where it calls.
#include <cstdio>

#include "warpline/client/client.h"
#include "warpline/client/error.h"
#include "warpline/v1/warpline.grpc.pb.h"

int main(int, char** argv) {
  warpline::client::Client client(argv[1], {});
  const float data[] = {1, 2, 3, 4, 5, 6};
  const auto result = client.Transpose({.x = {warpline::DType::kF32, {2, 3}, 0, data}}, absl::Seconds(10));
  std::printf("%s\n", warpline::client::Describe(result.status()).c_str());
  return absl::IsUnavailable(result.status()) ? 0 : 1;
}
