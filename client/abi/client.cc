#include "client/abi/client.h"

#include <google/protobuf/util/json_util.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "client/abi/error.h"
#include "client/src/interrupt.h"
#include "client/src/tls.h"
#include "client/src/transfer.h"
#include "cmake/version.h"
#include "kernels/status_macros.h"

using warpline::abi::Guarded;
using warpline::abi::KnownPart;
using warpline::abi::TextOf;

static_assert(static_cast<int>(warpline::client::SharedMemory::kAuto) == WARPLINE_SHARED_AUTO);
static_assert(static_cast<int>(warpline::client::SharedMemory::kAlways) == WARPLINE_SHARED_ALWAYS);

const char* warpline_version() { return warpline::kVersion; }

warpline_error* warpline_client_create(const char* target, const warpline_client_options* options,
                                       warpline_client** out) {
  return Guarded([&]() -> absl::Status {
    static const pid_t first_process = getpid();  // the first process that made a client
    if (getpid() != first_process) {
      return absl::FailedPreconditionError(
          absl::StrCat("process ", first_process,
                       " has made a client, and this is a forked child, where gRPC does not work"));
    }
    ASSIGN_OR_RETURN(const warpline_client_options given, KnownPart(options));
    if (given.max_retries < 0) {
      return absl::InvalidArgumentError(absl::StrCat("max_retries is ", given.max_retries, ": 0 or more"));
    }
    if (given.channels < 0 || given.channels > warpline::client::kMaxChannels) {
      return absl::InvalidArgumentError(
          absl::StrCat("channels is ", given.channels, ": 1 to ", warpline::client::kMaxChannels, ", or 0"));
    }
    const warpline::client::TlsOptions tls{
        .ca = TextOf(given.tls_ca), .cert = TextOf(given.tls_cert), .key = TextOf(given.tls_key)};
    RETURN_IF_ERROR(warpline::client::CredentialsFor(target, tls).status());
    if (given.shared_memory < WARPLINE_SHARED_EXPLICIT || given.shared_memory > WARPLINE_SHARED_ALWAYS) {
      return absl::InvalidArgumentError(
          absl::StrCat("shared_memory is ", given.shared_memory, ": one of WARPLINE_SHARED_..."));
    }
    warpline::client::ClientOptions made{
        .channel = {.own_connection = given.own_connection != 0, .tls = tls, .token = TextOf(given.token)},
        .max_retries = given.max_retries,
        .region_socket = TextOf(given.region_socket),
        .shared_memory = static_cast<warpline::client::SharedMemory>(given.shared_memory)};
    if (given.pool_bytes != 0) made.pool_bytes = given.pool_bytes;
    if (given.share_from_bytes != 0) made.share_from_bytes = given.share_from_bytes;
    if (given.stream_from_bytes != 0) made.stream_from_bytes = given.stream_from_bytes;
    made.channels = given.channels;
    *out = new warpline_client(target, made);
    return absl::OkStatus();
  });
}

void warpline_client_free(warpline_client* client) {
  // In a forked child, the threads that the destructor waits for do not exist.
  if (client != nullptr && client->Check().ok()) delete client;
}

void warpline_client_close(warpline_client* client) {
  if (client->Check().ok()) client->client.Close();
}

void warpline_set_interrupt(int32_t (*interrupt)(void*), void* data) {
  warpline::client::SetInterrupt(interrupt == nullptr ? std::function<bool()>()
                                                      : [interrupt, data] { return interrupt(data) != 0; });
}

char* warpline_client_take_warning(warpline_client* client) {
  const std::string text = client->client.TakeWarning();
  if (text.empty()) return nullptr;
  auto copy = std::make_unique<uint8_t[]>(text.size() + 1);
  std::memcpy(copy.get(), text.c_str(), text.size() + 1);
  return reinterpret_cast<char*>(copy.release());
}

int32_t warpline_client_shares(const warpline_client* client, const void* data, size_t bytes) {
  return client->client.Shares(data, bytes) ? 1 : 0;
}

warpline_error* warpline_client_serving(warpline_client* client, const char* service, double timeout,
                                        int32_t* out) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    ASSIGN_OR_RETURN(const bool serving, client->client.IsServing(TextOf(service), absl::Seconds(timeout)));
    *out = serving ? 1 : 0;
    return absl::OkStatus();
  });
}

warpline_error* warpline_client_info(warpline_client* client, double timeout, uint8_t** out, size_t* size) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    ASSIGN_OR_RETURN(const warpline::v1::GetInfoResponse info,
                     client->client.GetInfo(absl::Seconds(timeout)));
    const std::size_t bytes = info.ByteSizeLong();
    auto copy = std::make_unique<uint8_t[]>(bytes);
    if (!info.SerializeToArray(copy.get(), static_cast<int>(bytes))) {
      return absl::InternalError("the server's GetInfoResponse cannot be written");
    }
    *out = copy.release();
    *size = bytes;
    return absl::OkStatus();
  });
}

warpline_error* warpline_client_info_json(warpline_client* client, double timeout, uint8_t** out,
                                          size_t* size) {
  return Guarded([&]() -> absl::Status {
    RETURN_IF_ERROR(client->Check());
    ASSIGN_OR_RETURN(const warpline::v1::GetInfoResponse info,
                     client->client.GetInfo(absl::Seconds(timeout)));
    google::protobuf::util::JsonPrintOptions options;
#if GOOGLE_PROTOBUF_VERSION >= 5026000
    options.always_print_fields_with_no_presence = true;
#else
    options.always_print_primitive_fields = true;
#endif
    options.preserve_proto_field_names = true;
    std::string text;
    if (!google::protobuf::util::MessageToJsonString(info, &text, options).ok()) {
      return absl::InternalError("the server's GetInfoResponse cannot be written as JSON");
    }
    auto copy = std::make_unique<uint8_t[]>(text.size());
    std::memcpy(copy.get(), text.data(), text.size());
    *out = copy.release();
    *size = text.size();
    return absl::OkStatus();
  });
}

void warpline_bytes_free(uint8_t* bytes) { delete[] bytes; }
