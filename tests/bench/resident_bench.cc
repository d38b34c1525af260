// Measures what resident tensors cost and save, through a server that is running.
//
//   resident_bench ADDRESS streams    Put and Get of 1 GiB over 1, 2, 4 and 8 connections, in GB/s; also of
//                                     stream_server, for the same without tensors
//   resident_bench ADDRESS gemm       a bf16 product of 4096^2 on resident operands, result resident
//   resident_bench ADDRESS vectors    1,000 products of one resident 4096x4096 f32 matrix with a vector:
//                                     vector and result both inline, and both resident
//   resident_bench ADDRESS cycles     10,000 tensors of 1 MiB, made and dropped
//
// Payloads are random, messages 1 MiB, and no call copies a payload into a protobuf message. All calls of one
// connection are made one after the other.
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proto/wire/tensor_field.h"
#include "tests/bench/random_bytes.h"
#include "warpline/v1/warpline.grpc.pb.h"

namespace warpline {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kChunkBytes = kMiB;

double Since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

void Check(const grpc::Status& status, const char* what) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s: %s\n", what, status.error_message().c_str());
  std::exit(1);
}

std::shared_ptr<grpc::Channel> Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetMaxSendMessageSize(-1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

const std::string& RandomBytes() { return warpline::RandomBytes(64 * kMiB); }

// One call of raw messages, each operation awaited.
class RawStream {
 public:
  RawStream(const std::shared_ptr<grpc::Channel>& channel, const char* method) : stub_(channel) {
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    Next();
  }
  bool Write(const grpc::ByteBuffer& message) {
    call_->Write(message, nullptr);
    return Next();
  }
  void WritesDone() {
    call_->WritesDone(nullptr);
    Next();
  }
  bool Read(grpc::ByteBuffer& message) {
    call_->Read(&message, nullptr);
    return Next();
  }
  void Finish(const char* what) {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Next();
    Check(status, what);
  }

 private:
  bool Next() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
};

void Put(const std::shared_ptr<grpc::Channel>& channel, const std::string& id, std::size_t begin,
         std::size_t end) {
  const std::string& data = RandomBytes();
  RawStream stream(channel, "/warpline.v1.TensorService/Put");
  for (std::size_t at = begin; at < end; at += kChunkBytes) {
    const std::size_t bytes = std::min(kChunkBytes, end - at);
    v1::PutRequest request;
    if (at == begin) request.set_id(id);
    request.set_offset(static_cast<std::int64_t>(at));
    std::string head = request.SerializeAsString();
    AppendFieldHead(head, v1::PutRequest::kDataFieldNumber, bytes);
    const grpc::Slice slices[] = {
        grpc::Slice(head), grpc::Slice(data.data() + at % data.size(), bytes, grpc::Slice::STATIC_SLICE)};
    if (!stream.Write(grpc::ByteBuffer(slices, 2))) break;
  }
  stream.WritesDone();
  grpc::ByteBuffer answer;
  stream.Read(answer);
  stream.Finish("Put");
}

// Takes the messages and looks at none of them, as both servers' clients would do the same with them.
void Get(const std::shared_ptr<grpc::Channel>& channel, const std::string& id, std::size_t begin,
         std::size_t end) {
  v1::GetRequest request;
  request.set_id(id);
  request.set_offset(static_cast<std::int64_t>(begin));
  request.set_length(static_cast<std::int64_t>(end - begin));
  const grpc::Slice slice(request.SerializeAsString());
  RawStream stream(channel, "/warpline.v1.TensorService/Get");
  stream.Write(grpc::ByteBuffer(&slice, 1));
  stream.WritesDone();
  std::size_t bytes = 0;
  for (grpc::ByteBuffer message; stream.Read(message); message.Clear()) bytes += message.Length();
  stream.Finish("Get");
  if (bytes < end - begin) std::fprintf(stderr, "Get: only %zu bytes\n", bytes);
}

class Bench {
 public:
  explicit Bench(const std::string& address)
      : address_(address),
        tensors_(v1::TensorService::NewStub(Connect(address))),
        kernels_(v1::KernelService::NewStub(Connect(address))) {}

  void Streams() {
    constexpr std::size_t kBytes = std::size_t{1} << 30;
    RandomBytes();
    for (const std::size_t channels : {std::size_t{1}, std::size_t{2}, std::size_t{4}, std::size_t{8}}) {
      std::vector<std::shared_ptr<grpc::Channel>> connections;
      for (std::size_t i = 0; i < channels; ++i) connections.push_back(Connect(address_));
      std::vector<double> puts, gets;
      for (int round = 0; round < 4; ++round) {
        const std::string id = Create(v1::DATA_TYPE_U8, {static_cast<std::int64_t>(kBytes)});
        const auto all = [&](auto transfer) {
          const auto start = Clock::now();
          std::vector<std::thread> threads;
          for (std::size_t i = 0; i < channels; ++i) {
            threads.emplace_back(
                [&, i] { transfer(connections[i], id, kBytes / channels * i, kBytes / channels * (i + 1)); });
          }
          for (std::thread& thread : threads) thread.join();
          return static_cast<double>(kBytes) / Since(start) / 1e9;
        };
        const double put = all(Put), get = all(Get);
        Drop(id);
        if (round == 0) continue;  // connections, and memory that is taken for the first time
        puts.push_back(put);
        gets.push_back(get);
      }
      std::printf("%zu channels: put %.2f GB/s, get %.2f GB/s\n", channels, Median(puts), Median(gets));
    }
  }

  void Gemm() {
    constexpr std::int64_t n = 4096;
    const std::string a = Made(v1::DATA_TYPE_BF16, {n, n}, 2 * n * n),
                      b = Made(v1::DATA_TYPE_BF16, {n, n}, 2 * n * n);
    v1::GemmRequest request;
    request.mutable_a()->mutable_resident()->set_id(a);
    request.mutable_b()->mutable_resident()->set_id(b);
    request.mutable_options()->add_sinks()->mutable_resident();
    std::vector<double> all, device, stages[3];
    for (int i = 0; i < 220; ++i) {
      grpc::ClientContext context;
      v1::GemmResponse response;
      const auto start = Clock::now();
      Check(kernels_->Gemm(&context, request, &response), "Gemm");
      const double seconds = Since(start);
      Drop(response.d().resident().id());
      if (i < 20) continue;
      all.push_back(seconds);
      const v1::StageTimes& times = response.execution().stage_times();
      device.push_back(times.device());
      stages[0].push_back(times.convert());
      stages[1].push_back(times.admission());
      stages[2].push_back(times.queue());
    }
    std::printf("convert %.1f us, admission %.1f us, queue %.1f us\n", Median(stages[0]) * 1e6,
                Median(stages[1]) * 1e6, Median(stages[2]) * 1e6);
    std::printf("gemm bf16 4096^2 resident: p50 %.1f us, launch to completion %.1f us, beside it %.1f us\n",
                Median(all) * 1e6, Median(device) * 1e6, (Median(all) - Median(device)) * 1e6);
    Drop(a);
    Drop(b);
  }

  void Vectors() {
    constexpr std::int64_t n = 4096;
    const std::string matrix = Made(v1::DATA_TYPE_F32, {n, n}, 4 * n * n),
                      vector = Made(v1::DATA_TYPE_F32, {n, 1}, 4 * n);
    v1::GemmRequest request;
    request.mutable_a()->mutable_resident()->set_id(matrix);
    v1::Tensor& b = *request.mutable_b();
    b.set_data_type(v1::DATA_TYPE_F32);
    for (std::int64_t size : {n, std::int64_t{1}}) b.add_shape(size);
    b.set_inline_(RandomBytes().substr(0, 4 * n));
    v1::GemmRequest resident = request;
    resident.mutable_b()->Clear();
    resident.mutable_b()->mutable_resident()->set_id(vector);
    resident.mutable_options()->add_sinks()->mutable_resident()->set_ttl_seconds(5);
    const auto rate = [&](const v1::GemmRequest& each) {
      constexpr int kCalls = 1000;
      for (int i = 0; i < 50; ++i) Call(each);
      const auto start = Clock::now();
      for (int i = 0; i < kCalls; ++i) Call(each);
      return kCalls / Since(start);
    };
    std::vector<double> inline_rates, resident_rates;
    for (int round = 0; round < 3; ++round) {
      inline_rates.push_back(rate(request));
      resident_rates.push_back(rate(resident));
    }
    std::printf(
        "4096x4096 f32 by a vector, one after the other: inline %.0f /s, resident %.0f /s, ratio %.2f\n",
        Median(inline_rates), Median(resident_rates), Median(inline_rates) / Median(resident_rates));
  }

  void Cycles() {
    const auto start = Clock::now();
    for (int i = 0; i < 10000; ++i) Drop(Create(v1::DATA_TYPE_U8, {static_cast<std::int64_t>(kMiB)}));
    std::printf("10,000 tensors of 1 MiB made and dropped: %.1f us each\n", Since(start) * 100);
  }

 private:
  std::string Create(v1::DataType data_type, const std::vector<std::int64_t>& shape) {
    v1::CreateRequest request;
    request.set_data_type(data_type);
    request.mutable_shape()->Assign(shape.begin(), shape.end());
    grpc::ClientContext context;
    v1::CreateResponse response;
    Check(tensors_->Create(&context, request, &response), "Create");
    return response.tensor().resident().id();
  }
  std::string Made(v1::DataType data_type, const std::vector<std::int64_t>& shape, std::size_t bytes) {
    const std::string id = Create(data_type, shape);
    Put(Connect(address_), id, 0, bytes);
    return id;
  }
  void Drop(const std::string& id) {
    v1::DropRequest request;
    request.set_id(id);
    grpc::ClientContext context;
    v1::DropResponse response;
    const grpc::Status status = tensors_->Drop(&context, request, &response);
    if (status.error_code() != grpc::StatusCode::UNIMPLEMENTED) Check(status, "Drop");
  }
  void Call(const v1::GemmRequest& request) {
    grpc::ClientContext context;
    v1::GemmResponse response;
    Check(kernels_->Gemm(&context, request, &response), "Gemm");
  }

  const std::string address_;
  const std::unique_ptr<v1::TensorService::Stub> tensors_;
  const std::unique_ptr<v1::KernelService::Stub> kernels_;
};

int Main(int argc, char** argv) {
  const std::string what = argc == 3 ? argv[2] : "";
  if (what != "streams" && what != "gemm" && what != "vectors" && what != "cycles") {
    std::fprintf(stderr, "usage: resident_bench ADDRESS streams|gemm|vectors|cycles\n");
    return 2;
  }
  Bench bench(argv[1]);
  if (what == "streams") bench.Streams();
  if (what == "gemm") bench.Gemm();
  if (what == "vectors") bench.Vectors();
  if (what == "cycles") bench.Cycles();
  return 0;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) { return warpline::Main(argc, argv); }
