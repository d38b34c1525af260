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
}

}  // namespace
}  // namespace warpline
