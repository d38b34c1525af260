// Tests for load balancers, orchestrators and generic tools: grpc.health.v1 and server reflection. The
// requests are the bytes of the wire, as a client in any language would send them.
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

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
constexpr char kServiceUnknown[] = "\x08\x03";

TEST(HealthTest, EveryServiceIsServing) {
  Daemon daemon({"--echo"});
  for (const char* service :
       {"", "warpline.v1.KernelService", "warpline.v1.InfoService", "warpline.v1.EchoService"}) {
    StreamCall watch(daemon.Channel(), "/grpc.health.v1.Health/Watch");
    ASSERT_TRUE(watch.Write(HealthRequest(service)));
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

TEST(HealthTest, AWatcherOfAnUnknownServiceIsToldSoAndKept) {
  Daemon daemon;
  StreamCall watch(daemon.Channel(), "/grpc.health.v1.Health/Watch");
  ASSERT_TRUE(watch.Write(HealthRequest("no.such.Service")));
  EXPECT_EQ(watch.Read(), kServiceUnknown);
  EXPECT_TRUE(watch.Write(HealthRequest("no.such.Service"))) << "the stream has ended";
}

TEST(HealthTest, ACheckWithoutAMessageOrWithGarbageIsAnInvalidArgument) {
  Daemon daemon;
  EXPECT_EQ(
      RawCall(daemon.Channel(), Bytes("\xff\xff\xff"), absl::Seconds(60), "/grpc.health.v1.Health/Check")
          .error_code(),
      grpc::StatusCode::INVALID_ARGUMENT);
  StreamCall watch(daemon.Channel(), "/grpc.health.v1.Health/Watch");
  ASSERT_TRUE(watch.Write("\xff\xff\xff"));
  EXPECT_EQ(watch.Read(), "");
}

TEST(HealthTest, CompressedRequestsAreUnderstood) {
  Daemon daemon;
  // Long enough that gRPC does compress it. The unknown field 15 is skipped.
  const std::string request =
      HealthRequest("warpline.v1.KernelService") + "\x7a\x78" + std::string(0x78, 'x');
  EXPECT_TRUE(RawCall(daemon.Channel(), Bytes(request), absl::Seconds(60), "/grpc.health.v1.Health/Check",
                      GRPC_COMPRESS_GZIP)
                  .ok());
  EXPECT_TRUE(RawCall(daemon.Channel(), Bytes("\x3a\x78" + std::string(0x78, 'x')), absl::Seconds(60),
                      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", GRPC_COMPRESS_GZIP)
                  .ok());
}

TEST(HealthTest, AWatcherHearsOfTheDrain) {
  Daemon daemon;
  StreamCall watch(daemon.Channel(), "/grpc.health.v1.Health/Watch");
  ASSERT_TRUE(watch.Write(HealthRequest("warpline.v1.KernelService")));
  ASSERT_EQ(watch.Read(), kServing);
  daemon.Signal(SIGTERM);
  EXPECT_EQ(watch.Read(), kNotServing);
  EXPECT_EQ(daemon.Wait(), 0);
}

TEST(ReflectionTest, ListsAndDescribesTheServices) {
  Daemon daemon;
  StreamCall call(daemon.Channel(), "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo");
  ASSERT_TRUE(call.Write(std::string("\x3a\x00", 2)));  // list_services: ""
  const std::string services = call.Read();
  for (const char* service :
       {"warpline.v1.KernelService", "warpline.v1.InfoService", "grpc.health.v1.Health"}) {
    EXPECT_NE(services.find(service), std::string::npos) << service;
  }
  const std::string symbol = "warpline.v1.KernelService";
  ASSERT_TRUE(call.Write("\x22" + std::string(1, static_cast<char>(symbol.size())) +
                         symbol));  // file_containing_symbol
  EXPECT_NE(call.Read().find("TransposeRequest"), std::string::npos);
  const std::string file = "warpline/v1/warpline.proto";
  ASSERT_TRUE(
      call.Write("\x1a" + std::string(1, static_cast<char>(file.size())) + file));  // file_by_filename
  EXPECT_NE(call.Read().find("TransposeRequest"), std::string::npos);
  // error_response (field 7) with NOT_FOUND (field 1: 5)
  ASSERT_TRUE(call.Write(std::string("\x1a\x04none")));
  EXPECT_NE(call.Read().find(std::string("\x08\x05")), std::string::npos);
}

TEST(MethodTest, OneThatIsNotThereIsUnimplemented) {
  Daemon daemon;
  for (const char* method : {"/warpline.v1.KernelService/NoSuchMethod", "/no.such.Service/Method",
                             "/warpline.v1.EchoService/Echo"}) {
    EXPECT_EQ(RawCall(daemon.Channel(), Bytes("x"), absl::Seconds(60), method).error_code(),
              grpc::StatusCode::UNIMPLEMENTED)
        << method;
  }
}

// The pollers of gRPC's callback and synchronous servers would take events from our threads.
TEST(ThreadTest, NoPollerOfGrpcRuns) {
  Daemon daemon;
  // They would be there by now.
  EXPECT_TRUE(RawCall(daemon.Channel(), Bytes(""), absl::Seconds(60), "/grpc.health.v1.Health/Check").ok());
  const std::filesystem::path tasks = "/proc/" + std::to_string(daemon.pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    EXPECT_EQ(name.find("nexting"), std::string::npos) << name;
    EXPECT_EQ(name.find("sync_ser"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace warpline
