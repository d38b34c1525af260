// The options that all requests share. Pure.
#ifndef WARPLINE_SERVER_RPC_CODEC_REQUEST_OPTIONS_H_
#define WARPLINE_SERVER_RPC_CODEC_REQUEST_OPTIONS_H_

#include "absl/status/status.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// UNIMPLEMENTED naming the field ("options.sinks[1].region") if the request asks for what is not built yet.
absl::Status CheckRequestOptions(const v1::RequestOptions& options);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_REQUEST_OPTIONS_H_
