# find_package(warpline): the target warpline::client. gRPC, protobuf and Abseil are the user's, of the versions
# that warpline was built with: the generated headers check protobuf's.
include(${CMAKE_CURRENT_LIST_DIR}/WarplineGrpc.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/warplineTargets.cmake)
