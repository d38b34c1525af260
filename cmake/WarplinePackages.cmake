# The one list of the archives that gRPC 1.51 needs. Debian's gRPCConfig.cmake imports shared libraries only,
# though the packages hold the .a files; static linking makes small requests 20 to 30 % cheaper and the
# binaries independent of the distribution's gRPC.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(GRPCPP REQUIRED grpc++)
pkg_check_modules(PROTOBUF REQUIRED protobuf)

function(warpline_find_archive variable name)
  find_library(${variable} NAMES lib${name}.a REQUIRED)
  mark_as_advanced(${variable})
endfunction()

foreach(name IN ITEMS grpc++_reflection grpc++_error_details grpc++ grpc gpr upb address_sorting protobuf re2 cares
                      ssl crypto z)
  warpline_find_archive(WARPLINE_${name}_ARCHIVE ${name})
  list(APPEND grpc_archives ${WARPLINE_${name}_ARCHIVE})
endforeach()
# Abseil is many small archives that need each other; the linker takes what it needs from the group.
get_filename_component(archive_dir ${WARPLINE_grpc_ARCHIVE} DIRECTORY)
file(GLOB absl_archives ${archive_dir}/libabsl_*.a)
list(FILTER absl_archives EXCLUDE REGEX "_test_util|scoped_set_env")

add_library(warpline_absl INTERFACE)
target_link_libraries(warpline_absl INTERFACE -Wl,--start-group ${absl_archives} -Wl,--end-group Threads::Threads rt)

add_library(warpline_protobuf INTERFACE)
target_link_libraries(warpline_protobuf INTERFACE ${WARPLINE_protobuf_ARCHIVE} ${WARPLINE_z_ARCHIVE} Threads::Threads)

add_library(warpline_grpc INTERFACE)
target_link_libraries(warpline_grpc INTERFACE -Wl,--start-group ${grpc_archives} ${absl_archives} -Wl,--end-group
                      Threads::Threads rt dl)
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
