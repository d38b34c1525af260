// The paths of the API's methods, in gRPC's form.
#ifndef WARPLINE_CLIENT_SRC_METHODS_H_
#define WARPLINE_CLIENT_SRC_METHODS_H_

#include <string>

namespace warpline::client {

const std::string& RunMethod();
const std::string& GetInfoMethod();
const std::string& HealthMethod();
// Methods of TensorService.
const std::string& CreateMethod();
const std::string& PutMethod();
const std::string& GetMethod();
const std::string& DropMethod();
const std::string& RenewMethod();
const std::string& ListMethod();
// Methods of RegionService.
const std::string& OpenRegionMethod();
// The echo method, for benchmarks. Servers offer it only if it is enabled.
const std::string& EchoMethod();

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_METHODS_H_
