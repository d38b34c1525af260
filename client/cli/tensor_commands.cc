// `warpline put`, `get`, `drop` and `tensors`.
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "client/cli/npy/file.h"
#include "client/cli/operands.h"
#include "client/cli/output.h"
#include "client/cli/output_file.h"
#include "client/cli/progress_line.h"
#include "client/cli/tensor_path.h"
#include "client/src/transfer.h"
#include "kernels/status_macros.h"
#include "warpline/client.h"

namespace warpline::client {
namespace {

absl::StatusOr<ClientOptions> OptionsFrom(const Args& args, const CommonFlags& common) {
  ASSIGN_OR_USAGE(const std::int64_t retries, args.Integer("retries", 0, 0, 1000));
  return ClientOptions{.channel = common.channel(), .max_retries = static_cast<int>(retries)};
}

absl::StatusOr<int> ChannelsFrom(const Args& args) {
  if (!args.Has("channels")) return 0;
  ASSIGN_OR_USAGE(const std::int64_t channels, args.Integer("channels", 1, 1, kMaxChannels));
  return static_cast<int>(channels);
}

// Of `count` tensors that were to be dropped, with the error of each that was not; `untried`: how many of
// them nothing was asked about, because of the last error.
absl::Status DropError(std::span<const absl::Status> failed, std::size_t untried, std::size_t count) {
  if (failed.empty()) return absl::OkStatus();
  if (count == 1) return failed[0];
  std::string text = absl::StrCat("of ", count, " tensors ", failed.size() + untried, " were not dropped");
  for (const absl::Status& each : failed) {
    absl::StrAppend(&text, "\n  ", each.message(), " (", absl::StatusCodeToString(each.code()), ")");
  }
  if (untried > 0) absl::StrAppend(&text, "\n  ", untried, " more were not tried");
  return WithText(failed.back(), text);
}

}  // namespace

absl::Status RunPut(const Args& args, const CommonFlags& common) {
  if (args.positionals().size() != 2) {
    return UsageError(absl::StrCat("put takes 1 file, not ", args.positionals().size() - 1));
  }
  const std::string& path = args.positionals()[1];
  if (IsTensorPath(path)) {
    return UsageError(absl::StrCat(Shown(path), " is on the server already; a file of that name is ./@NAME"));
  }
  ASSIGN_OR_USAGE(const absl::Duration ttl, args.Duration("ttl", absl::ZeroDuration()));
  ASSIGN_OR_USAGE(const bool quiet, args.Bool("quiet"));
  ASSIGN_OR_RETURN(const int channels, ChannelsFrom(args));
  ASSIGN_OR_RETURN(const ClientOptions options, OptionsFrom(args, common));
  const absl::StatusOr<NpyArray> array =
      ReadNpy(path, common.dtype, std::numeric_limits<std::int64_t>::max());
  if (!array.ok()) return AsFileError(array.status());
  const ConstArray stored = array->stored.AsArray();
  ASSIGN_OR_USAGE(const std::size_t bytes, ByteSize(stored));

  Client client(common.server, options);
  std::optional<Tensor> tensor;
  {
    ProgressLine line(absl::StrCat("put ", path == "-" ? "standard input" : path), bytes, quiet);
    ASSIGN_OR_RETURN(tensor, client.Put(stored, common.deadline,
                                        {.ttl = ttl, .channels = channels, .progress = line.callback()}));
  }
  if (!array->fortran) return PrintId(*tensor);
  // What was put is the transpose of what is meant, and goes with its handle.
  ASSIGN_OR_RETURN(Result result, client.Transpose({.x = *tensor, .perm = ToRowMajorPerm(*array)},
                                                   common.deadline, {.destination = {.keep = ttl}}));
  return PrintId(*result.tensor);
}

absl::Status RunGet(const Args& args, const CommonFlags& common) {
  if (args.positionals().size() != 2) {
    return UsageError(absl::StrCat("get takes 1 id, not ", args.positionals().size() - 1));
  }
  ASSIGN_OR_RETURN(const std::string id, TensorId(args.positionals()[1]));
  const std::string path = args.String("output", "");
  if (args.Strings("output").size() != 1) return UsageError("get: one -o X.npy is to be given");
  if (IsTensorPath(path)) {
    return UsageError(
        absl::StrCat("-o ", Shown(path), ": the tensor is on the server already; a file is ./@NAME"));
  }
  if (IsTerminal(path)) {
    return UsageError(
        absl::StrCat("-o ", path, ": the terminal would show bytes: name a file, or redirect it"));
  }
  ASSIGN_OR_USAGE(const bool quiet, args.Bool("quiet"));
  ASSIGN_OR_RETURN(const int channels, ChannelsFrom(args));
  ASSIGN_OR_RETURN(const ClientOptions options, OptionsFrom(args, common));

  Client client(common.server, options);
  const absl::StatusOr<Tensor> attached = client.Attach(id, common.deadline);
  if (!attached.ok()) return WithSubject(attached.status(), ShortId(id));
  const Tensor& tensor = *attached;
  Array array;
  {
    ProgressLine line(absl::StrCat("get ", ShortId(id)), tensor.bytes(), quiet);
    ASSIGN_OR_RETURN(
        array, client.Get(tensor, common.deadline, {.channels = channels, .progress = line.callback()}));
  }
  const absl::Status written = WriteNpy(path, array.View(), false);
  return written.ok() ? written : AsFileError(written);
}

absl::Status RunDrop(const Args& args, const CommonFlags& common) {
  std::vector<std::string> ids;
  for (std::size_t i = 1; i < args.positionals().size(); ++i) {
    ASSIGN_OR_RETURN(std::string id, TensorId(args.positionals()[i]));
    ids.push_back(std::move(id));
  }
  if (ids.empty()) return UsageError("drop: an id is missing");
  ASSIGN_OR_RETURN(const ClientOptions options, OptionsFrom(args, common));
  Client client(common.server, options);
  std::vector<absl::Status> failed;
  std::size_t tried = 0;
  while (tried < ids.size()) {
    const std::string& id = ids[tried++];
    const absl::Status dropped = client.Drop(id, common.deadline);
    if (dropped.ok()) continue;
    failed.push_back(WithSubject(dropped, ShortId(id)));
    // That one tensor is not there need not be so with the others.
    if (!absl::IsNotFound(dropped) && !absl::IsFailedPrecondition(dropped)) break;
  }
  return DropError(failed, ids.size() - tried, ids.size());
}

absl::Status RunTensors(const Args& args, const CommonFlags& common) {
  if (args.positionals().size() > 1) return UsageError("tensors takes no file");
  ASSIGN_OR_RETURN(const ClientOptions options, OptionsFrom(args, common));
  Client client(common.server, options);
  ASSIGN_OR_RETURN(const std::vector<TensorInfo> tensors, client.ListTensors(common.deadline));
  std::fputs(FormatTensors(tensors, common.json).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace warpline::client
