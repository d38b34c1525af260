// Converts small messages to and from text.
#ifndef WARPLINE_SERVER_RPC_SLICES_H_
#define WARPLINE_SERVER_RPC_SLICES_H_

#include <grpcpp/grpcpp.h>

#include <string>
#include <vector>

namespace warpline {

inline grpc::ByteBuffer ToByteBuffer(const std::string& message) {
  const grpc::Slice slice(message);
  return grpc::ByteBuffer(&slice, 1);
}

inline std::string ToString(const std::vector<grpc::Slice>& slices) {
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_SLICES_H_
