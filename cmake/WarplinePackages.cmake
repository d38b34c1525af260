include(WarplineGrpc)
# So that the client library can become a part of a shared library, as gRPC then is one.
if(WARPLINE_GRPC_CONFIG)
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
endif()
find_program(WARPLINE_PROTOC protoc REQUIRED)
find_program(WARPLINE_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
if(WARPLINE_CLIENT_ONLY)
  return()
endif()

find_package(prometheus-cpp REQUIRED)
add_library(warpline_prometheus INTERFACE)
target_link_libraries(warpline_prometheus INTERFACE prometheus-cpp::core)

find_path(WARPLINE_EIGEN_INCLUDE Eigen/Core PATH_SUFFIXES eigen3 REQUIRED)
add_library(warpline_eigen INTERFACE)
target_include_directories(warpline_eigen SYSTEM INTERFACE ${WARPLINE_EIGEN_INCLUDE})
warpline_find_archive(WARPLINE_openblas_ARCHIVE openblas)
find_path(WARPLINE_CBLAS_INCLUDE cblas.h PATH_SUFFIXES ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread ${CMAKE_LIBRARY_ARCHITECTURE} REQUIRED)
add_library(warpline_openblas INTERFACE)
target_include_directories(warpline_openblas SYSTEM INTERFACE ${WARPLINE_CBLAS_INCLUDE})
target_link_libraries(warpline_openblas INTERFACE ${WARPLINE_openblas_ARCHIVE} Threads::Threads m)

# Command lines. Headers only.
find_path(WARPLINE_CLI11_INCLUDE CLI/CLI.hpp REQUIRED)
add_library(warpline_cli11 INTERFACE)
target_include_directories(warpline_cli11 SYSTEM INTERFACE ${WARPLINE_CLI11_INCLUDE})

# JSON. Headers only.
find_path(WARPLINE_JSON_INCLUDE nlohmann/json.hpp REQUIRED)
add_library(warpline_json INTERFACE)
target_include_directories(warpline_json SYSTEM INTERFACE ${WARPLINE_JSON_INCLUDE})

# The daemon's malloc: its requests begin on one thread and end on another, for which glibc's takes locks. Sanitizers
# bring their own.
add_library(warpline_malloc INTERFACE)
if(NOT WARPLINE_SANITIZE)
  warpline_find_archive(WARPLINE_tcmalloc_ARCHIVE tcmalloc_minimal)
  find_path(WARPLINE_TCMALLOC_INCLUDE gperftools/malloc_extension.h REQUIRED)
  target_include_directories(warpline_malloc SYSTEM INTERFACE ${WARPLINE_TCMALLOC_INCLUDE})
  target_link_libraries(warpline_malloc INTERFACE ${WARPLINE_tcmalloc_ARCHIVE} Threads::Threads)
  target_compile_definitions(warpline_malloc INTERFACE WARPLINE_TCMALLOC)
endif()
