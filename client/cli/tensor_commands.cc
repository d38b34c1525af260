// `warpline put`, `get`, `drop` and `tensors`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/args.h"
#include "client/cli/command_line.h"
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

struct TransferFlags {
  int channels = 0;  // zero: by size
  bool quiet = false;

  void AddTo(CLI::App& app, CommonFlags& common) {
    app.add_option("--channels", channels, "connections, with a thread each (default: by size)")
        ->check(CLI::Range(1, kMaxChannels));
    common.AddRetries(app);
    app.add_flag("-q,--quiet", quiet, "no progress on the terminal");
  }
};

struct PutFlags : TransferFlags {
  std::string path;
  absl::Duration ttl;  // zero: the server's default
};

struct GetFlags : TransferFlags {
  std::string id, output;
};

struct DropFlags {
  std::vector<std::string> ids;
};

struct TensorsFlags {};

constexpr char kNotes[] =
    R"(Every command that reads an array also takes @ID, the tensor with that id. -o @ leaves a result on the server
and prints its id. Each use of a tensor renews its lease. Tensors end with the server's process. The id is a
secret: it lets everybody who knows it read the tensor. The server brings files in Fortran order into row-major
order, which needs memory for both. For a file whose name begins with @, write ./@NAME.

  weights=$(warpline put weights.npy --ttl 1h)
  y=$(warpline gemm x.npy @$weights -o @)
  warpline get $y -o y.npy
  warpline drop $y $weights
)";

ClientOptions OptionsFrom(const CommonFlags& common) {
  return {.channel = common.channel(), .max_retries = common.retries};
}

// Returns the error of dropping `count` tensors. `failed` has the error of each tensor that could not be
// dropped. `untried` tensors were not tried because of the last error.
absl::Status DropError(std::span<const absl::Status> failed, std::size_t untried, std::size_t count) {
  if (failed.empty()) return absl::OkStatus();
  if (count == 1) return failed[0];
  std::string text = absl::StrCat(failed.size() + untried, " of ", count, " tensors were not dropped");
  for (const absl::Status& each : failed) {
    absl::StrAppend(&text, "\n  ", each.message(), " (", absl::StatusCodeToString(each.code()), ")");
  }
  if (untried > 0) absl::StrAppend(&text, "\n  ", untried, " more were not tried");
  return WithText(failed.back(), text);
}

absl::Status RunPut(const PutFlags& flags, const CommonFlags& common) {
  const std::string& path = flags.path;
  if (IsTensorPath(path)) {
    return UsageError(absl::StrCat(Shown(path), " is on the server already; a file of that name is ./@NAME"));
  }
  const absl::StatusOr<NpyArray> array =
      ReadNpy(path, common.dtype, std::numeric_limits<std::int64_t>::max());
  if (!array.ok()) return AsFileError(array.status());
  const ConstArray stored = array->stored.AsArray();
  ASSIGN_OR_USAGE(const std::size_t bytes, ByteSize(stored));

  Client client(common.server, OptionsFrom(common));
  std::optional<Tensor> tensor;
  {
    ProgressLine line(absl::StrCat("put ", path == "-" ? "standard input" : path), bytes, flags.quiet);
    ASSIGN_OR_RETURN(tensor,
                     client.Put(stored, common.deadline,
                                {.ttl = flags.ttl, .channels = flags.channels, .progress = line.callback()}));
  }
  if (!array->fortran) return PrintId(*tensor);
  // The tensor that was put is the transpose of the actual array. It is dropped with its handle.
  ASSIGN_OR_RETURN(Result result, client.Transpose({.x = *tensor, .perm = ToRowMajorPerm(*array)},
                                                   common.deadline, {.destination = {.keep = flags.ttl}}));
  return PrintId(*result.tensor);
}

absl::Status RunGet(const GetFlags& flags, const CommonFlags& common) {
  ASSIGN_OR_RETURN(const std::string id, TensorId(flags.id));
  const std::string& path = flags.output;
  if (IsTensorPath(path)) {
    return UsageError(
        absl::StrCat("-o ", Shown(path), ": the tensor is on the server already; a file is ./@NAME"));
  }
  if (IsTerminal(path)) {
    return UsageError(
        absl::StrCat("-o ", path, ": the terminal would show bytes: name a file, or redirect it"));
  }

  Client client(common.server, OptionsFrom(common));
  const absl::StatusOr<Tensor> attached = client.Attach(id, common.deadline);
  if (!attached.ok()) return WithSubject(attached.status(), ShortId(id));
  const Tensor& tensor = *attached;
  Array array;
  {
    ProgressLine line(absl::StrCat("get ", ShortId(id)), tensor.bytes(), flags.quiet);
    ASSIGN_OR_RETURN(array, client.Get(tensor, common.deadline,
                                       {.channels = flags.channels, .progress = line.callback()}));
  }
  const absl::Status written = WriteNpy(path, array.View(), false);
  return written.ok() ? written : AsFileError(written);
}

absl::Status RunDrop(const DropFlags& flags, const CommonFlags& common) {
  std::vector<std::string> ids;
  for (const std::string& given : flags.ids) {
    ASSIGN_OR_RETURN(std::string id, TensorId(given));
    ids.push_back(std::move(id));
  }
  Client client(common.server, OptionsFrom(common));
  std::vector<absl::Status> failed;
  std::size_t tried = 0;
  while (tried < ids.size()) {
    const std::string& id = ids[tried++];
    const absl::Status dropped = client.Drop(id, common.deadline);
    if (dropped.ok()) continue;
    failed.push_back(WithSubject(dropped, ShortId(id)));
    // If one tensor does not exist, the others still may.
    if (!absl::IsNotFound(dropped) && !absl::IsFailedPrecondition(dropped)) break;
  }
  return DropError(failed, ids.size() - tried, ids.size());
}

absl::Status RunTensors(const TensorsFlags&, const CommonFlags& common) {
  Client client(common.server, OptionsFrom(common));
  ASSIGN_OR_RETURN(const std::vector<TensorInfo> tensors, client.ListTensors(common.deadline));
  std::fputs(FormatTensors(tensors, common.json).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddPut(CommandLine& line) {
  auto [app, flags, common] =
      line.Add("put", "leave an array on the server, and print its id", "put weights.npy --ttl 1h", RunPut);
  app.add_option("X.npy", flags.path)->required()->type_name("FILE");
  AddTime(app, "--ttl", flags.ttl,
          "how long the tensor stays on the server after its last use (default: 10m)");
  common.AddDType(app);
  flags.AddTo(app, common);
  app.footer(absl::StrCat(kNotes, "\n", app.get_footer()));
}

void AddGet(CommandLine& line) {
  auto [app, flags, common] = line.Add("get", "fetch a tensor from the server", "get $id -o x.npy", RunGet);
  app.add_option("ID", flags.id)->required()->type_name("ID");
  app.add_option("-o,--output", flags.output, "where the elements go, a .npy file; - is standard output")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::Throw)
      ->check(NotAnOption)
      ->type_name("FILE");
  flags.AddTo(app, common);
}

void AddDrop(CommandLine& line) {
  auto [app, flags, common] =
      line.Add("drop", "end the leases of tensors on the server", "drop $id", RunDrop);
  app.add_option("ID", flags.ids)->required()->type_name("ID");
  common.AddRetries(app);
}

void AddTensors(CommandLine& line) {
  auto [app, flags, common] =
      line.Add("tensors", "list the tensors on the server, with their ids", "tensors --json", RunTensors);
  common.AddRetries(app);
}

}  // namespace warpline::client
