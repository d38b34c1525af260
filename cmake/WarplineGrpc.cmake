# gRPC, protobuf, Abseil and OpenSSL as the targets warpline_grpc, warpline_protobuf, warpline_absl, warpline_openssl.
#
# By default they are the distribution's archives, of which this is the one list: Debian's gRPCConfig.cmake imports
# shared libraries only, though the packages hold the .a files; static linking makes small requests 20 to 30 % cheaper
# and the binaries independent of the distribution's gRPC. With WARPLINE_GRPC_CONFIG they are what find_package finds:
# another gRPC, of CMAKE_PREFIX_PATH, or the distribution's shared libraries, with which the client library can
# become a part of a shared library.
#
# Installed too: find_package(warpline) finds the user's with it.
include_guard(GLOBAL)
# All targets are for the whole of the user's project, of which this may be a part in a folder of its own.
find_package(Threads REQUIRED GLOBAL)
# The installed package has set it already.
if(NOT DEFINED WARPLINE_GRPC_CONFIG)
  option(WARPLINE_GRPC_CONFIG "gRPC, protobuf, Abseil and OpenSSL by find_package, not the distribution's archives" OFF)
endif()

function(warpline_find_archive variable name)
  # Ubuntu names c-ares' archive libcares_static.a.
  find_library(${variable} NAMES lib${name}.a lib${name}_static.a REQUIRED)
  mark_as_advanced(${variable})
endfunction()

# server/rpc/grpc_1_51 says what this is about.
macro(warpline_name_grpc version)
  set(WARPLINE_GRPC_1_51 OFF)
  if(${version} VERSION_LESS 1.60)
    set(WARPLINE_GRPC_1_51 ON)
  endif()
endmacro()

if(WARPLINE_GRPC_CONFIG)
  find_package(absl CONFIG REQUIRED GLOBAL)
  find_package(OpenSSL REQUIRED GLOBAL)
  find_package(ZLIB REQUIRED GLOBAL)
  # A protobuf that has a package of its own was built with it; Debian's has none, and CMake knows where it is.
  find_package(Protobuf CONFIG QUIET GLOBAL)
  if(NOT Protobuf_FOUND)
    find_package(Protobuf REQUIRED GLOBAL)
  endif()
  find_package(gRPC CONFIG REQUIRED GLOBAL)
  warpline_name_grpc(${gRPC_VERSION})
  foreach(name IN ITEMS absl openssl protobuf grpc)
    add_library(warpline_${name} INTERFACE IMPORTED GLOBAL)
  endforeach()
  target_link_libraries(warpline_absl INTERFACE
    absl::any_invocable absl::cleanup absl::cord absl::failure_signal_handler absl::flat_hash_map absl::flat_hash_set absl::hash absl::inlined_vector
    absl::node_hash_map absl::raw_logging_internal absl::span absl::status absl::statusor absl::str_format absl::strings
    absl::symbolize absl::synchronization absl::time)
  if(NOT WARPLINE_GRPC_1_51)
    target_link_libraries(warpline_absl INTERFACE absl::log absl::log_globals absl::log_initialize absl::log_sink
                                                  absl::log_sink_registry)
    # Of the scanner, which checks texts as protobuf does.
    find_package(utf8_range CONFIG REQUIRED GLOBAL)
    target_link_libraries(warpline_absl INTERFACE utf8_range::utf8_validity)
  endif()
  target_link_libraries(warpline_openssl INTERFACE OpenSSL::SSL OpenSSL::Crypto)
  target_link_libraries(warpline_protobuf INTERFACE protobuf::libprotobuf)
  target_link_libraries(warpline_grpc INTERFACE gRPC::grpc++ gRPC::grpc++_error_details warpline_protobuf warpline_absl
                                                warpline_openssl ZLIB::ZLIB Threads::Threads)
  add_library(warpline_shared_grpc INTERFACE IMPORTED GLOBAL)
  target_link_libraries(warpline_shared_grpc INTERFACE warpline_grpc)
  return()
endif()

find_file(WARPLINE_GRPC_VERSION_HEADER grpcpp/version_info.h REQUIRED)
mark_as_advanced(WARPLINE_GRPC_VERSION_HEADER)
file(STRINGS ${WARPLINE_GRPC_VERSION_HEADER} version REGEX GRPC_CPP_VERSION_STRING)
string(REGEX MATCH "[0-9.]+[0-9]" version "${version}")
warpline_name_grpc(${version})
foreach(name IN ITEMS grpc++_error_details grpc++ grpc gpr address_sorting protobuf re2 cares ssl crypto z)
  warpline_find_archive(WARPLINE_${name}_ARCHIVE ${name})
  list(APPEND grpc_archives ${WARPLINE_${name}_ARCHIVE})
endforeach()
get_filename_component(archive_dir ${WARPLINE_grpc_ARCHIVE} DIRECTORY)
# upb is one archive or many, by its version. What compresses certificates is there where OpenSSL's archive needs it.
file(GLOB upb_archives ${archive_dir}/libupb*.a)
file(GLOB zstd_archive ${archive_dir}/libzstd.a)
list(APPEND grpc_archives ${upb_archives} ${zstd_archive})
# Abseil is many small archives that need each other. A linker script makes one library of a set: CMake's
# own link groups lose their place in the order of a long link line. A newer protobuf stands on it, and on a check of
# UTF-8 that the daemon's scanner uses too.
file(GLOB absl_archives ${archive_dir}/libabsl_*.a)
file(GLOB utf8_archives ${archive_dir}/libutf8_*.a)
list(APPEND absl_archives ${utf8_archives})
list(FILTER absl_archives EXCLUDE REGEX "_test_util|scoped_set_env")

# The same as shared libraries, for what is a shared library itself.
add_library(warpline_shared_grpc INTERFACE IMPORTED GLOBAL)
file(GLOB shared_absl ${archive_dir}/libabsl_*.so ${archive_dir}/libutf8_validity.so)
list(FILTER shared_absl EXCLUDE REGEX "_test_util|scoped_set_env|absl_flags")
foreach(name IN ITEMS grpc++_error_details grpc++ grpc gpr protobuf ssl crypto)
  target_link_libraries(warpline_shared_grpc INTERFACE ${archive_dir}/lib${name}.so)
endforeach()
target_link_libraries(warpline_shared_grpc INTERFACE ${shared_absl} Threads::Threads)

# Imported, so that exported targets may refer to it by name.
function(warpline_join_archives name)
  list(JOIN ARGN " " members)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/lib/lib${name}.a CONTENT "GROUP ( ${members} )\n")
  add_library(${name} INTERFACE IMPORTED GLOBAL)
  target_link_libraries(${name} INTERFACE ${CMAKE_BINARY_DIR}/lib/lib${name}.a Threads::Threads rt dl)
endfunction()

warpline_join_archives(warpline_absl ${absl_archives})
warpline_join_archives(warpline_openssl ${WARPLINE_ssl_ARCHIVE} ${WARPLINE_crypto_ARCHIVE} ${zstd_archive}
                       ${WARPLINE_z_ARCHIVE})
warpline_join_archives(warpline_protobuf ${WARPLINE_protobuf_ARCHIVE} ${WARPLINE_z_ARCHIVE} ${absl_archives})
warpline_join_archives(warpline_grpc ${grpc_archives} ${absl_archives})
