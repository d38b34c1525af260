// The codec of each kind of message. It has everything that differs between kinds: how to find the payloads,
// how a request becomes a program, and how a result becomes a response. All other code is the same for all
// kinds.
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

// The fields of a message that the scanner treats as references, in this order.
enum class ReferenceKind { kResident, kRegion };

// The tensors to which the references of a message refer, or the reason why there is none, in their order.
// For a region, which has no data type or shape, no tensor is needed here.
using References = std::vector<absl::StatusOr<TensorSpec>>;

struct Codec {
  RequestKind kind;  // of a request whose program is unknown
  // The name of the method in KernelService.
  std::string_view method;
  // The field to name in the error if a request as a whole is too large.
  std::string_view whole;
  ScanSchema schema;
  absl::StatusOr<Conversion> (*decode)(const ScannedMessage& message, const References& references,
                                       const Limits& limits);
  // Returns the response in as many parts as it has outputs, but at least one. Part i comes before the
  // elements of output i.
  std::vector<std::string> (*encode)(const ResponseParts& parts);
};

// One for each method of KernelService.
std::vector<Codec> KernelCodecs();

// Returns the kind of a refused request: that of its program, if the header can be read.
RequestKind KindOf(const Codec& codec, const ScannedMessage& message);

// Two requests of one kind have the same key exactly when they have the same plan. They may differ in the
// contents of payloads, the values of scalars, the tensors that they refer to or free, and the places of
// region slices. However, the scalars must be of the same classes (scalar_class.h), and the tensors of the
// same data types and shapes. The header has tokens in place of all these values; the key adds the lengths of
// the payloads, the classes, and the types and shapes.
std::string PlanKey(RequestKind kind, const ScannedMessage& message, const References& references = {});

// Returns the plan of a scanned message, without a cost, or why there is none. It does not check whether
// variants exist or whether the request fits.
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
