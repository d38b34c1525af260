#include "client/src/methods.h"

namespace warpline::client {
namespace {

// In the order of OperationArgs.
const std::string kOperations[] = {"/warpline.v1.KernelService/Transpose", "/warpline.v1.KernelService/Gemm",
                                   "/warpline.v1.KernelService/Reduce"};
const std::string kRun = "/warpline.v1.KernelService/Run";
const std::string kGetInfo = "/warpline.v1.InfoService/GetInfo";
const std::string kHealth = "/grpc.health.v1.Health/Check";
const std::string kEcho = "/warpline.v1.EchoService/Echo";

}  // namespace

const std::string& MethodOf(const OperationArgs& args) { return kOperations[args.index()]; }
const std::string& RunMethod() { return kRun; }
const std::string& GetInfoMethod() { return kGetInfo; }
const std::string& HealthMethod() { return kHealth; }
const std::string& EchoMethod() { return kEcho; }

}  // namespace warpline::client
