#include "client/src/methods.h"

namespace warpline::client {
namespace {

const std::string kRun = "/warpline.v1.KernelService/Run";
const std::string kGetInfo = "/warpline.v1.InfoService/GetInfo";
const std::string kHealth = "/grpc.health.v1.Health/Check";
const std::string kCreate = "/warpline.v1.TensorService/Create";
const std::string kPut = "/warpline.v1.TensorService/Put";
const std::string kGet = "/warpline.v1.TensorService/Get";
const std::string kDrop = "/warpline.v1.TensorService/Drop";
const std::string kRenew = "/warpline.v1.TensorService/Renew";
const std::string kList = "/warpline.v1.TensorService/List";
const std::string kOpenRegion = "/warpline.v1.RegionService/Open";
const std::string kEcho = "/warpline.v1.EchoService/Echo";

}  // namespace

const std::string& RunMethod() { return kRun; }
const std::string& GetInfoMethod() { return kGetInfo; }
const std::string& HealthMethod() { return kHealth; }
const std::string& CreateMethod() { return kCreate; }
const std::string& PutMethod() { return kPut; }
const std::string& GetMethod() { return kGet; }
const std::string& DropMethod() { return kDrop; }
const std::string& RenewMethod() { return kRenew; }
const std::string& ListMethod() { return kList; }
const std::string& OpenRegionMethod() { return kOpenRegion; }
const std::string& EchoMethod() { return kEcho; }

}  // namespace warpline::client
