// The paths of the API's methods, as gRPC wants them.
#ifndef WARPLINE_CLIENT_SRC_METHODS_H_
#define WARPLINE_CLIENT_SRC_METHODS_H_

#include <string>

#include "warpline/requests.h"

namespace warpline::client {

// Returns the name of the method that carries out these arguments.
const std::string& MethodOf(const OperationArgs& args);
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
// The echo method. Only servers that are told to have it do; for benchmarks.
const std::string& EchoMethod();

}  // namespace warpline::client

#endif  // WARPLINE_CLIENT_SRC_METHODS_H_
