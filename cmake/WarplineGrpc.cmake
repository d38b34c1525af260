# The one list of the archives that gRPC 1.51 needs. Debian's gRPCConfig.cmake imports shared libraries only,
# though the packages hold the .a files; static linking makes small requests 20 to 30 % cheaper and the
# binaries independent of the distribution's gRPC.
#
# Installed too: find_package(warpline) finds the user's archives with it.
include_guard(DIRECTORY)
find_package(Threads REQUIRED)

function(warpline_find_archive variable name)
  # Ubuntu names c-ares' archive libcares_static.a.
  find_library(${variable} NAMES lib${name}.a lib${name}_static.a REQUIRED)
  mark_as_advanced(${variable})
endfunction()

foreach(name IN ITEMS grpc++_error_details grpc++ grpc gpr upb address_sorting protobuf re2 cares
                      ssl crypto z)
  warpline_find_archive(WARPLINE_${name}_ARCHIVE ${name})
  list(APPEND grpc_archives ${WARPLINE_${name}_ARCHIVE})
endforeach()
# Abseil is many small archives that need each other. A linker script makes one library of a set: CMake's
# own link groups lose their place in the order of a long link line.
get_filename_component(archive_dir ${WARPLINE_grpc_ARCHIVE} DIRECTORY)
file(GLOB absl_archives ${archive_dir}/libabsl_*.a)
list(FILTER absl_archives EXCLUDE REGEX "_test_util|scoped_set_env")

# Imported, so that exported targets may refer to it by name.
function(warpline_join_archives name)
  list(JOIN ARGN " " members)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/lib/lib${name}.a CONTENT "GROUP ( ${members} )\n")
  add_library(${name} INTERFACE IMPORTED)
  target_link_libraries(${name} INTERFACE ${CMAKE_BINARY_DIR}/lib/lib${name}.a Threads::Threads rt dl)
endfunction()

warpline_join_archives(warpline_absl ${absl_archives})
warpline_join_archives(warpline_openssl ${WARPLINE_ssl_ARCHIVE} ${WARPLINE_crypto_ARCHIVE})
warpline_join_archives(warpline_grpc ${grpc_archives} ${absl_archives})
