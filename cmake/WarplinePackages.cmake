# The one list of the archives that gRPC 1.51 needs. Debian's gRPCConfig.cmake imports shared libraries only,
# though the packages hold the .a files; static linking makes small requests 20 to 30 % cheaper and the
# binaries independent of the distribution's gRPC.
find_package(Threads REQUIRED)

function(warpline_find_archive variable name)
  find_library(${variable} NAMES lib${name}.a REQUIRED)
  mark_as_advanced(${variable})
endfunction()

foreach(name IN ITEMS grpc++_reflection grpc++_error_details grpc++ grpc gpr upb address_sorting protobuf re2 cares
                      ssl crypto z)
  warpline_find_archive(WARPLINE_${name}_ARCHIVE ${name})
  list(APPEND grpc_archives ${WARPLINE_${name}_ARCHIVE})
endforeach()
# Abseil is many small archives that need each other. A linker script makes one library of a set: CMake's
# own link groups lose their place in the order of a long link line.
get_filename_component(archive_dir ${WARPLINE_grpc_ARCHIVE} DIRECTORY)
file(GLOB absl_archives ${archive_dir}/libabsl_*.a)
list(FILTER absl_archives EXCLUDE REGEX "_test_util|scoped_set_env")

function(warpline_join_archives name)
  list(JOIN ARGN " " members)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/lib/lib${name}.a CONTENT "GROUP ( ${members} )\n")
  add_library(${name} INTERFACE)
  target_link_libraries(${name} INTERFACE ${CMAKE_BINARY_DIR}/lib/lib${name}.a Threads::Threads rt dl)
endfunction()

warpline_join_archives(warpline_absl ${absl_archives})
warpline_join_archives(warpline_grpc ${grpc_archives} ${absl_archives})
find_program(WARPLINE_PROTOC protoc REQUIRED)
find_program(WARPLINE_GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)

find_package(prometheus-cpp REQUIRED)
find_library(WARPLINE_CIVETWEB_CPP civetweb-cpp REQUIRED)
find_library(WARPLINE_CIVETWEB civetweb REQUIRED)
add_library(warpline_prometheus INTERFACE)
target_link_libraries(warpline_prometheus INTERFACE prometheus-cpp::core)
add_library(warpline_civetweb INTERFACE)
target_link_libraries(warpline_civetweb INTERFACE ${WARPLINE_CIVETWEB_CPP} ${WARPLINE_CIVETWEB})

find_path(WARPLINE_EIGEN_INCLUDE Eigen/Core PATH_SUFFIXES eigen3 REQUIRED)
add_library(warpline_eigen INTERFACE)
target_include_directories(warpline_eigen SYSTEM INTERFACE ${WARPLINE_EIGEN_INCLUDE})
warpline_find_archive(WARPLINE_openblas_ARCHIVE openblas)
find_path(WARPLINE_CBLAS_INCLUDE cblas.h PATH_SUFFIXES x86_64-linux-gnu/openblas-pthread x86_64-linux-gnu REQUIRED)
add_library(warpline_openblas INTERFACE)
target_include_directories(warpline_openblas SYSTEM INTERFACE ${WARPLINE_CBLAS_INCLUDE})
target_link_libraries(warpline_openblas INTERFACE ${WARPLINE_openblas_ARCHIVE} Threads::Threads m)
