# A relocatable tree: bin/, lib/ (what is shared only), share/doc. `cpack -G TGZ` packs it.
# The component `development` is for find_package(warpline) and not in it: it needs the gRPC it was built with.
include(WarplineLicenses)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME runtime)
if(NOT WARPLINE_CLIENT_ONLY)
  install(TARGETS warplined warpline RUNTIME)
  get_target_property(core_location prometheus-cpp::core LOCATION)
  get_filename_component(core_directory ${core_location} DIRECTORY)
  file(GLOB core_versions ${core_directory}/libprometheus-cpp-core.so.*)
  install(FILES ${core_versions} TYPE LIB)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/deploy/systemd ${PROJECT_SOURCE_DIR}/deploy/haproxy
          DESTINATION share/warpline)
endif()
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md TYPE DOC)
install(DIRECTORY ${WARPLINE_LICENSES} TYPE DOC)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/proto/ DESTINATION share/warpline/proto FILES_MATCHING PATTERN "*.proto")

# The client library; users write <warpline/client.h>. Below include/warpline/internal is what its headers include under
# names that others may have too ("kernels/dtype.h"): users get that folder from CMake. include/warpline itself must not
# be searched: its error.h would hide that of the C library.
install(TARGETS warpline_client warpline_kernels warpline_proto warpline_rules warpline_wire EXPORT warplineTargets
        ARCHIVE COMPONENT development
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} ${CMAKE_INSTALL_INCLUDEDIR}/warpline/internal)
foreach(name IN ITEMS client kernels proto rules wire)
  set_target_properties(warpline_${name} PROPERTIES EXPORT_NAME ${name})
endforeach()
# Its C interface; it needs the distribution's shared gRPC.
install(TARGETS warpline_abi LIBRARY COMPONENT development NAMELINK_COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/client/include/warpline TYPE INCLUDE COMPONENT development
        FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_SOURCE_DIR}/kernels/dtype.h ${PROJECT_SOURCE_DIR}/kernels/per_axis.h
        ${PROJECT_SOURCE_DIR}/kernels/shape.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warpline/internal/kernels COMPONENT development)
set(generated ${PROJECT_BINARY_DIR}/proto/gen)
install(FILES ${generated}/warpline/v1/warpline.pb.h ${generated}/warpline/v1/warpline.grpc.pb.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warpline/v1 COMPONENT development)
install(FILES ${generated}/google/rpc/status.pb.h ${generated}/google/rpc/error_details.pb.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/warpline/internal/google/rpc COMPONENT development)

include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/warplineConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT warplineTargets NAMESPACE warpline:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/warpline COMPONENT development)
configure_file(${PROJECT_SOURCE_DIR}/cmake/warplineConfig.cmake.in ${PROJECT_BINARY_DIR}/warplineConfig.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/warplineConfig.cmake ${PROJECT_SOURCE_DIR}/cmake/WarplineGrpc.cmake
              ${PROJECT_BINARY_DIR}/warplineConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/warpline COMPONENT development)

set(CPACK_PACKAGE_NAME warpline)
set(CPACK_GENERATOR TGZ)
set(package_kind cpu)
if(WARPLINE_HAVE_CUDA)
  set(package_kind cuda${CUDAToolkit_VERSION_MAJOR})
endif()
set(CPACK_PACKAGE_FILE_NAME warpline-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}-${package_kind})
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_COMPONENTS_ALL runtime)
include(CPack)
