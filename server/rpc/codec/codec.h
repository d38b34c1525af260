// The codec of each kind of message. It has all that the server must know of one kind: how to find its
// payloads, how it becomes a program, and how a result becomes a response. Everything else in a request is
// the same for all kinds.
#ifndef WARPLINE_SERVER_RPC_CODEC_CODEC_H_
#define WARPLINE_SERVER_RPC_CODEC_CODEC_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/wire/scanner.h"
#include "server/observe/request_kind.h"
#include "server/plan/plan.h"
#include "server/rpc/codec/convert.h"
#include "warpline/v1/warpline.pb.h"

namespace warpline {

// The fields of a message that the scanner takes for references, in this order.
enum class ReferenceKind { kResident, kRegion };

// The tensors that the references of a message name, or why there is none, in their order. A region has
// neither data type nor shape: of these nothing is asked here.
using References = std::vector<absl::StatusOr<TensorSpec>>;

struct Codec {
  RequestKind kind;  // of a request whose program is not known
  // The name of the method in KernelService.
  std::string_view method;
  // The field to blame for a request that is too large as a whole.
  std::string_view whole;
  ScanSchema schema;
  absl::StatusOr<Conversion> (*decode)(const ScannedMessage& message, const References& references,
                                       const Limits& limits);
  // The response in as many parts as it has outputs, at least one: part i comes before the elements of output
  // i.
  std::vector<std::string> (*encode)(const ResponseParts& parts);
};

// One for each method of KernelService.
std::vector<Codec> KernelCodecs();

// The kind of a request that was refused: of its program, if the header can be read.
RequestKind KindOf(const Codec& codec, const ScannedMessage& message);

// Two requests of one kind have the same key exactly when they differ in nothing but the contents of their
// payloads, the values of their scalars, the tensors that they refer to, the places of slices of regions and
// the tensors that they free, when the scalars are of the same classes (scalar_class.h), and the tensors of
// the same data types and shapes. The header has tokens in place of all of them; the lengths of the payloads,
// the classes and the types and shapes are added.
std::string PlanKey(RequestKind kind, const ScannedMessage& message, const References& references = {});

// The plan of a scanned message, without a cost, or why there can be none. Which variants exist and what fits
// is for others to check.
struct DecodedPlan {
  Plan plan;
  // The same as in Conversion.
  std::vector<std::string> step_names;
  bool reproducible = false;  // the request asks for it
};
absl::StatusOr<DecodedPlan> DecodePlan(const Codec& codec, const ScannedMessage& message,
                                       const References& references, const Limits& limits);

}  // namespace warpline

#endif  // WARPLINE_SERVER_RPC_CODEC_CODEC_H_
