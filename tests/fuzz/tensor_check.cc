#include "tests/fuzz/tensor_check.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/device/cpu_backend.h"
#include "server/rpc/codec/tensor_info.h"
#include "server/rpc/tensor_requests.h"
#include "tests/fuzz/documented_error.h"
#include "tests/testing/wire_agreement.h"

namespace warpline::testing {
namespace {

using absl::StatusCode;

constexpr std::size_t kDeviceBytes = 16 << 10;
constexpr std::size_t kQuota = 2 << 10;  // of the second owner
constexpr std::size_t kMaxTensors = 12;
constexpr double kHour = 3600, kDay = 86400;
// The first digits of an id name its server.
constexpr std::size_t kServerDigits = 8;
bool IsId(const std::string& text) {
  constexpr std::size_t kDigits = 32;
  const std::string digits = text.substr(0, std::min(text.size(), kServerDigits)) +
                             text.substr(std::min(text.size(), kServerDigits + 1));
  return text.size() == kServerDigits + 1 + kDigits && text[kServerDigits] == '-' &&
         digits.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::unique_ptr<Backend> MakeBackend() {
  auto backend = CreateCpuBackend({.resident_bytes = kDeviceBytes});
  if (!backend.ok()) std::abort();
  return *std::move(backend);
}

OwnerLimits LimitsOfOwner(OwnerId owner) {
  OwnerLimits limits;
  if (owner == 2) limits.resident_bytes = kQuota;
  return limits;
}

// True if leases of that length are left out.
bool IsFleeting(double seconds) { return seconds > 0 && seconds < kHour; }
bool IsLease(double seconds) { return seconds == 0 || (seconds > 0 && seconds <= kDay); }

std::string Compare(const char* call, StatusCode expected, const absl::Status& status) {
  if (!status.ok()) {
    if (std::string flaw = FlawOfError(status); !flaw.empty()) return absl::StrCat(call, ": ", flaw);
  }
  if (status.code() == expected) return "";
  return absl::StrCat(call, " answers ", status.ToString(), " and should answer ",
                      absl::StatusCodeToString(expected));
}

}  // namespace

std::size_t TensorCheck::Tensor::missing() const {
  return static_cast<std::size_t>(std::count(written.begin(), written.end(), false));
}

TensorCheck::TensorCheck()
    : backend_(MakeBackend()),
      store_(
          {.default_ttl = absl::Hours(24),
           .max_ttl = absl::Seconds(kDay),
           .max_tensors = kMaxTensors,
           .device_bytes = {kDeviceBytes},
           .limits_of = LimitsOfOwner},
          [this](int device, std::size_t bytes) { return backend_->AllocateResident(device, bytes); },
          metrics_),
      schema_(PutSchema()),
      site_(metrics_, "put") {
  const auto first = store_.Create(CallerWith(1), TensorSpec(), absl::Hours(1), 0);
  if (!first.ok()) std::abort();
  server_ = first->id.substr(0, kServerDigits);
  static_cast<void>(store_.Drop(1, first->id));
}

std::string TensorCheck::IdOf(const std::string& name) const {
  if (name.size() != 1 || name[0] < '0' || name[0] > '9') return name;
  const auto index = static_cast<std::size_t>(name[0] - '0');
  return index < tensors_.size() ? tensors_[index].id : name;
}

std::optional<std::size_t> TensorCheck::Find(const std::string& id, OwnerId owner) const {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].id == id && tensors_[i].owner == owner && !tensors_[i].dropped) return i;
  }
  return std::nullopt;
}

StatusCode TensorCheck::CodeOf(const std::string& id, OwnerId owner) const {
  if (id.empty()) return StatusCode::kInvalidArgument;
  if (Find(id, owner).has_value()) return StatusCode::kOk;
  const bool is_foreign = IsId(id) && id.substr(0, kServerDigits) != server_;
  return is_foreign ? StatusCode::kFailedPrecondition : StatusCode::kNotFound;
}

std::size_t TensorCheck::Charged(std::optional<OwnerId> owner) const {
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors_) {
    if (!owner.has_value() || tensor.owner == *owner) bytes += tensor.charged;
  }
  return bytes;
}

std::string TensorCheck::Check(const CallSequence& calls) {
  for (std::size_t i = 0; i < calls.size(); ++i) {
    ++counts_.calls;
    if (std::string flaw = Run(calls[i]); !flaw.empty()) return absl::StrCat("call ", i, ": ", flaw);
  }
  return GiveUpAll();
}

std::string TensorCheck::Run(const FuzzedCall& call) {
  const OwnerId owner = 1 + call.argument % 2;
  Stream& stream = streams_[call.argument / 2 % streams_.size()];
  switch (static_cast<TensorCall>(call.method % kTensorCalls)) {
    case TensorCall::kCreate:
      return Create(call.message, owner);
    case TensorCall::kPut:
      if (stream.sequence == nullptr) {
        stream.sequence = std::make_unique<PutSequence>(store_, owner);
        stream.owner = owner;
      }
      return Put(call.message, stream, call.argument / 8);
    case TensorCall::kEndPut:
      return EndPut(stream);
    case TensorCall::kCancelPut:
      Cancel(stream);
      return "";
    case TensorCall::kGet:
      return Get(call.message, owner);
    case TensorCall::kDrop:
      return Drop(call.message, owner);
    case TensorCall::kRenew:
      return Renew(call.message, owner);
    case TensorCall::kList:
      return List(call.message, owner);
  }
  return "";
}

std::string TensorCheck::Create(const std::string& message, OwnerId owner) {
  v1::CreateRequest request;
  if (!request.ParseFromString(message) || IsFleeting(request.ttl_seconds())) return "";
  const absl::StatusOr<TensorSpec> spec = SpecOf(request);
  const bool is_valid =
      spec.ok() && IsLease(request.ttl_seconds()) && (!request.has_device() || request.device() == 0);
  std::size_t charged = 0;
  // A type that is unknown is not implemented.
  StatusCode expected = is_valid     ? StatusCode::kOk
                        : !spec.ok() ? spec.status().code()
                                     : StatusCode::kInvalidArgument;
  if (is_valid) {
    charged = spec->bytes > kDeviceBytes ? kDeviceBytes + 1 : (spec->bytes + 255) / 256 * 256;
    std::size_t own = 0, others = 0;
    for (const Tensor& tensor : tensors_) {
      if (!tensor.dropped || tensor.writers > 0) ++(tensor.owner == owner ? own : others);
    }
    const std::size_t left = kMaxTensors - others;
    const bool has_its_part = own == 0 ? left == 0 : own + 1 > left - left / 4;
    if (Charged(std::nullopt) + charged > kDeviceBytes || (owner == 2 && Charged(owner) + charged > kQuota) ||
        has_its_part) {
      expected = StatusCode::kResourceExhausted;
    }
  }
  const absl::StatusOr<TensorStore::Info> made = CreateTensor(request, CallerWith(owner), 1, store_);
  if (std::string flaw = Compare("Create", expected, made.status()); !flaw.empty()) return flaw;
  if (!made.ok()) return "";
  ++counts_.created;
  tensors_.push_back({.owner = owner,
                      .id = made->id,
                      .charged = charged,
                      .bytes = std::vector<std::uint8_t>(spec->bytes),
                      .written = std::vector<bool>(spec->bytes)});
  return made->missing_bytes == spec->bytes ? "" : "a new tensor has something";
}

StatusCode TensorCheck::ExpectedOfPut(const v1::PutRequest& request, const Stream& stream) const {
  std::optional<std::size_t> found = stream.tensor;
  std::size_t end = stream.begin + stream.bytes.size();
  if (!found.has_value()) {
    if (request.id().empty() || request.offset() < 0) return StatusCode::kInvalidArgument;
    if (const StatusCode code = CodeOf(request.id(), stream.owner); code != StatusCode::kOk) return code;
    found = Find(request.id(), stream.owner);
    end = static_cast<std::size_t>(request.offset());
    if (end > tensors_[*found].bytes.size()) return StatusCode::kInvalidArgument;
  } else if ((!request.id().empty() && request.id() != stream.id) ||
             request.offset() != static_cast<std::int64_t>(end)) {
    return StatusCode::kInvalidArgument;
  }
  const Tensor& tensor = tensors_[*found];
  const std::size_t more = request.data().size();
  if (more > tensor.bytes.size() - end) return StatusCode::kInvalidArgument;
  for (std::size_t i = end; i < end + more; ++i) {
    if (tensor.written[i]) return StatusCode::kInvalidArgument;
  }
  for (const Stream& other : streams_) {
    if (&other == &stream || other.tensor != found || other.bytes.empty() || more == 0) continue;
    if (other.begin < end + more && end < other.begin + other.bytes.size()) return StatusCode::kAborted;
  }
  return StatusCode::kOk;
}

std::string TensorCheck::Put(const std::string& message, Stream& stream, std::uint8_t cut) {
  v1::PutRequest request;
  const bool can_be_read = request.ParseFromString(message);
  request.set_id(IdOf(request.id()));
  const StatusCode expected = can_be_read ? ExpectedOfPut(request, stream) : StatusCode::kInvalidArgument;

  const std::size_t sizes[] = {1u + cut % 8u, 1u + cut / 8u * 16u};
  const std::vector<std::span<const std::byte>> slices = Slice(message, sizes);
  absl::StatusOr<PutMessage> read = ReadPutMessage(schema_, slices);
  absl::Status status = read.status();
  ByteRange range;
  if (status.ok()) {
    read->request.set_id(IdOf(read->request.id()));
    if (!stream.sequence->has_begun()) status = stream.sequence->Begin(read->request);
    if (status.ok()) {
      const absl::StatusOr<ByteRange> extended = stream.sequence->Extend(*read);
      status = extended.status();
      if (extended.ok()) range = *extended;
    }
  }
  if (std::string flaw = Compare("Put", expected, status); !flaw.empty()) return flaw;
  if (!status.ok()) {
    Cancel(stream);
    return "";
  }
  std::vector<std::span<const std::byte>> pieces;
  ForEachPiece(slices, read->data, [&](std::span<const std::byte> piece) { pieces.push_back(piece); });
  CopyPayload(site_, stream.sequence->writing().memory().bytes().subspan(range.begin, range.size()).data(),
              pieces);
  if (!stream.tensor.has_value()) {
    stream.tensor = Find(request.id(), stream.owner);
    stream.begin = static_cast<std::size_t>(request.offset());
    stream.id = request.id();
    ++tensors_[*stream.tensor].writers;
  }
  if (range.begin != stream.begin + stream.bytes.size() || range.size() != request.data().size()) {
    return "Put writes elsewhere than asked";
  }
  stream.bytes += request.data();
  return "";
}

std::string TensorCheck::EndPut(Stream& stream) {
  if (!stream.tensor.has_value()) {
    Cancel(stream);
    return "";
  }
  Tensor& tensor = tensors_[*stream.tensor];
  for (std::size_t i = 0; i < stream.bytes.size(); ++i) {
    tensor.bytes[stream.begin + i] = static_cast<std::uint8_t>(stream.bytes[i]);
    tensor.written[stream.begin + i] = true;
  }
  const std::size_t missing = stream.sequence->writing().Commit(), expected = tensor.missing();
  if (!stream.bytes.empty()) ++counts_.committed;
  Cancel(stream);
  return missing == expected ? "" : absl::StrCat("after Put ", missing, " bytes are missing, not ", expected);
}

void TensorCheck::Cancel(Stream& stream) {
  if (stream.tensor.has_value()) {
    Tensor& tensor = tensors_[*stream.tensor];
    if (--tensor.writers == 0 && tensor.dropped) tensor.charged = 0;
  }
  stream = Stream();
}

std::string TensorCheck::Get(const std::string& message, OwnerId owner) {
  v1::GetRequest request;
  if (!request.ParseFromString(message)) return "";
  request.set_id(IdOf(request.id()));
  StatusCode expected = CodeOf(request.id(), owner);
  if (request.offset() < 0 || request.length() < 0) expected = StatusCode::kInvalidArgument;
  const std::optional<std::size_t> found = Find(request.id(), owner);
  const auto offset = static_cast<std::size_t>(request.offset());
  auto length = static_cast<std::size_t>(request.length());
  if (expected == StatusCode::kOk) {
    const Tensor& tensor = tensors_[*found];
    if (tensor.missing() > 0 || offset > tensor.bytes.size() || length > tensor.bytes.size() - offset) {
      expected = StatusCode::kInvalidArgument;
    } else if (length == 0) {
      length = tensor.bytes.size() - offset;
    }
  }
  const absl::StatusOr<AskedRange> asked = FindAsked(request, owner, store_);
  if (std::string flaw = Compare("Get", expected, asked.status()); !flaw.empty()) return flaw;
  if (!asked.ok()) return "";
  ++counts_.read;
  const std::span<const std::byte> read =
      asked->reading.memory.bytes().subspan(asked->range.begin, asked->range.size());
  const std::vector<std::uint8_t>& wanted = tensors_[*found].bytes;
  const bool same = read.size() == length &&
                    std::equal(read.begin(), read.end(), wanted.begin() + static_cast<std::ptrdiff_t>(offset),
                               [](std::byte a, std::uint8_t b) { return a == std::byte{b}; });
  v1::GetResponse response;
  std::string bytes = GetResponseHead(&asked->reading.info, asked->range.begin, read.size());
  bytes.append(reinterpret_cast<const char*>(read.data()), read.size());
  if (!response.ParseFromString(bytes) || response.data().size() != read.size())
    return "Get answers what nobody can read";
  return same ? "" : "Get reads other bytes than were put";
}

StatusCode TensorCheck::CodeOfIds(const std::string& id, std::span<const std::string> ids,
                                  OwnerId owner) const {
  if (ids.empty()) return CodeOf(id, owner);
  return id.empty() && ids.size() <= 1000 ? StatusCode::kOk : StatusCode::kInvalidArgument;
}

std::string TensorCheck::Drop(const std::string& message, OwnerId owner) {
  v1::DropRequest request;
  if (!request.ParseFromString(message)) return "";
  const std::vector<std::string> ids = ResolveIds(request);
  const StatusCode expected = CodeOfIds(request.id(), ids, owner);
  std::set<std::size_t> gone;
  for (const std::string& id : ids.empty() ? std::vector{request.id()} : ids) {
    if (CodeOf(id, owner) == StatusCode::kOk) gone.insert(*Find(id, owner));
  }
  const absl::StatusOr<std::vector<Buffer>> dropped = DropTensors(request, owner, store_);
  if (std::string flaw = Compare("Drop", expected, dropped.status()); !flaw.empty()) return flaw;
  if (expected != StatusCode::kOk) return "";
  if (dropped->size() != gone.size()) return "Drop drops another number of tensors";
  for (const std::size_t i : gone) {
    tensors_[i].dropped = true;
    if (tensors_[i].writers == 0) tensors_[i].charged = 0;
  }
  return "";
}

std::string TensorCheck::Renew(const std::string& message, OwnerId owner) {
  v1::RenewRequest request;
  if (!request.ParseFromString(message) || IsFleeting(request.ttl_seconds())) return "";
  const std::vector<std::string> ids = ResolveIds(request);
  const StatusCode expected =
      IsLease(request.ttl_seconds()) ? CodeOfIds(request.id(), ids, owner) : StatusCode::kInvalidArgument;
  const absl::StatusOr<v1::RenewResponse> renewed = RenewTensors(request, owner, store_);
  if (std::string flaw = Compare("Renew", expected, renewed.status()); !flaw.empty()) return flaw;
  if (!renewed.ok()) return "";
  if (renewed->ttl_seconds_size() != static_cast<int>(ids.size()))
    return "Renew tells of another number of leases";
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool is_there = CodeOf(ids[i], owner) == StatusCode::kOk;
    if ((renewed->ttl_seconds(static_cast<int>(i)) > 0) != is_there) return "Renew finds other tensors";
  }
  if (!ids.empty()) return "";
  const auto missing = static_cast<std::int64_t>(tensors_[*Find(request.id(), owner)].missing());
  return renewed->tensor().missing_bytes() == missing ? "" : "Renew tells of other missing bytes";
}

std::string TensorCheck::List(const std::string& message, OwnerId owner) {
  v1::ListRequest request;
  if (!request.ParseFromString(message)) return "";
  request.set_page_token(IdOf(request.page_token()));
  const absl::StatusOr<v1::ListResponse> listed = ListTensors(request, owner, store_);
  if (std::string flaw = Compare(
          "List", request.page_size() < 0 ? StatusCode::kInvalidArgument : StatusCode::kOk, listed.status());
      !flaw.empty()) {
    return flaw;
  }
  if (!listed.ok()) return "";
  std::set<std::string> ids;
  for (const Tensor& tensor : tensors_) {
    if (tensor.owner == owner && !tensor.dropped && tensor.id > request.page_token()) ids.insert(tensor.id);
  }
  const std::size_t page = request.page_size() == 0 ? 1000 : static_cast<std::size_t>(request.page_size());
  const bool has_more = ids.size() > page;
  if (static_cast<std::size_t>(listed->tensors_size()) != std::min(ids.size(), page))
    return "List has another length";
  auto id = ids.begin();
  for (const v1::TensorInfo& info : listed->tensors()) {
    if (info.resident().id() != *id++) return "List has other tensors";
  }
  const std::string& token = listed->next_page_token();
  return has_more == !token.empty() && (token.empty() || token == *std::prev(id)) ? ""
                                                                                  : "List goes on elsewhere";
}

std::string TensorCheck::GiveUpAll() {
  for (Stream& stream : streams_) Cancel(stream);
  for (Tensor& tensor : tensors_) {
    if (!tensor.dropped) static_cast<void>(store_.Drop(tensor.owner, tensor.id));
  }
  tensors_.clear();
  if (store_.size() != 0) return absl::StrCat(store_.size(), " tensors are left");
  if (metrics_.resident_tensors.Value() != 0) return "tensors count that are not there";
  return metrics_.ResidentBytes(0).Value() == 0 ? "" : "bytes are charged for nothing";
}

}  // namespace warpline::testing
