// What load balancers, orchestrators and generic tools see: grpc.health.v1 and server reflection, in the
// bytes of the wire, as a client in any language would send them.
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/e2e/daemon.h"
#include "tests/e2e/requests.h"

namespace warpline {
namespace {

// HealthCheckRequest: field 1, the service's name. HealthCheckResponse: field 1, 1 SERVING, 2 NOT_SERVING.
std::string HealthRequest(const std::string& service) {
  return service.empty() ? "" : "\x0a" + std::string(1, static_cast<char>(service.size())) + service;
}
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

// A streaming call of which one message at a time is read.
class StreamCall {
 public:
  StreamCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method) : stub_(channel) {
    SetTimeout(context_, absl::Seconds(60));
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    Next();
  }
  ~StreamCall() {
    context_.TryCancel();
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Next();
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }
  void Write(const std::string& message) {
    call_->Write(Bytes(message), nullptr);
    EXPECT_TRUE(Next());
  }
  // Empty at the end of the stream.
  std::string Read() {
    grpc::ByteBuffer buffer;
    call_->Read(&buffer, nullptr);
    if (!Next()) return "";
    grpc::Slice slice;
    EXPECT_TRUE(buffer.DumpToSingleSlice(&slice).ok());
    return std::string(reinterpret_cast<const char*>(slice.begin()), slice.size());
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

TEST(HealthTest, EveryServiceIsServing) {
  Daemon daemon({"--echo"});
  for (const char* service :
       {"", "warpline.v1.KernelService", "warpline.v1.InfoService", "warpline.v1.EchoService"}) {
    StreamCall watch(daemon.Channel(), "/grpc.health.v1.Health/Watch");
    watch.Write(HealthRequest(service));
    EXPECT_EQ(watch.Read(), kServing) << service;
  }
  EXPECT_TRUE(RawCall(daemon.Channel(), Bytes(HealthRequest("warpline.v1.KernelService")), absl::Seconds(60),
                      "/grpc.health.v1.Health/Check")
                  .ok());
  EXPECT_EQ(RawCall(daemon.Channel(), Bytes(HealthRequest("no.such.Service")), absl::Seconds(60),
                    "/grpc.health.v1.Health/Check")
                .error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST(HealthTest, AWatcherHearsOfTheDrain) {
  Daemon daemon;
  StreamCall watch(daemon.Channel(), "/grpc.health.v1.Health/Watch");
  watch.Write(HealthRequest("warpline.v1.KernelService"));
  ASSERT_EQ(watch.Read(), kServing);
  daemon.Signal(SIGTERM);
  EXPECT_EQ(watch.Read(), kNotServing);
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(ReflectionTest, ListsAndDescribesTheServices) {
  Daemon daemon;
  StreamCall call(daemon.Channel(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  call.Write(std::string("\x3a\x00", 2));  // list_services: ""
  const std::string services = call.Read();
  for (const char* service :
       {"warpline.v1.KernelService", "warpline.v1.InfoService", "grpc.health.v1.Health"}) {
    EXPECT_NE(services.find(service), std::string::npos) << service;
  }
  const std::string symbol = "warpline.v1.KernelService";
  call.Write("\x22" + std::string(1, static_cast<char>(symbol.size())) + symbol);  // file_containing_symbol
  EXPECT_NE(call.Read().find("TransposeRequest"), std::string::npos);
}

}  // namespace
}  // namespace warpline
