set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
include(GNUInstallDirs)
# Libraries that travel beside the binaries (prometheus-cpp is shared only).
file(RELATIVE_PATH libraries_from_binaries ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(CMAKE_INSTALL_RPATH "$ORIGIN/${libraries_from_binaries}")
# Otherwise CMake leaves room for it in what it builds, in the form of empty folders: the linker takes those for the
# current one, and would load a library from wherever a binary is run.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)

set(WARPLINE_SANITIZE "" CACHE STRING "Passed to -fsanitize")

# Warnings are errors in our code; generated code is built without this. Not where another project takes this one in, nor
# with compilers that we have not tried: what they newly warn of must keep nobody from building. Nor with sanitizers: GCC warns of impossible accesses
# in the code that they add (GCC 13 of a std::vector's assignment in convert.cc); the other builds see our code.
set(werror OFF)
if(PROJECT_IS_TOP_LEVEL AND NOT WARPLINE_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU AND
   CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  set(werror ON)
endif()
option(WARPLINE_WERROR "Warnings in our code are errors" ${werror})
add_library(warpline_warnings INTERFACE)
target_compile_options(warpline_warnings INTERFACE
  # -Wrestrict: false alarms of GCC 12 on std::string (its bug 105651). -Wmissing-field-initializers: designated
  # initialisers leave members to their defaults on purpose.
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wno-missing-field-initializers>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>)
if(WARPLINE_WERROR)
  target_compile_options(warpline_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()

# The daemon reads what strangers send: a mistake in our code shall end it, and not be of use to them. Not with
# sanitizers, which see more, nor where another project decides; and not in a Debug build, as glibc's checks need
# optimisation. What CUDA's compiler passes on to the host's has none of it.
set(harden OFF)
if(PROJECT_IS_TOP_LEVEL AND NOT WARPLINE_SANITIZE)
  set(harden ON)
endif()
option(WARPLINE_HARDEN "Checks of libstdc++ and glibc, protected stacks, a read-only relocation table" ${harden})
if(WARPLINE_HARDEN)
  set(fortify 3)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
    set(fortify 2)
  endif()
  set(hardening -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=${fortify} -D_GLIBCXX_ASSERTIONS -fstack-protector-strong
                -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND hardening -fcf-protection)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    list(APPEND hardening -mbranch-protection=standard)
  endif()
  add_compile_options("$<$<AND:$<COMPILE_LANGUAGE:C,CXX>,$<NOT:$<CONFIG:Debug>>>:${hardening}>")
  add_link_options(LINKER:-z,relro,-z,now)
endif()

if(WARPLINE_SANITIZE)
  add_compile_options(-fsanitize=${WARPLINE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${WARPLINE_SANITIZE})
endif()
# Of code that fuzzers run but need not be guided by. With all the branches of Eigen and of generated code, they would
# keep thousands of inputs that differ in nothing of interest, and spend most of their time on counting.
function(warpline_not_for_guidance target)
  if(WARPLINE_SANITIZE MATCHES "fuzzer-no-link")
    target_compile_options(${target} PRIVATE -fno-sanitize=fuzzer-no-link)
  endif()
endfunction()

# Reading the headers of gRPC, protobuf and GoogleTest is 2 to 3 s of the 4 to 12 s that a file takes. Not with ccache,
# which does not recognise a file that uses a precompiled header unless its user allows it some sloppiness. Files
# include what they use all the same: header_check and developers with ccache build without.
option(WARPLINE_PRECOMPILE "Precompile headers of libraries, except with ccache" ON)
if("${CMAKE_CXX_COMPILER_LAUNCHER} ${CMAKE_CXX_COMPILER}" MATCHES "ccache")
  set(WARPLINE_PRECOMPILE OFF)
endif()
# warpline_precompile(TARGET HEADERS...), or warpline_precompile(TARGET REUSE OTHER) with one of the same flags.
function(warpline_precompile target)
  if(NOT WARPLINE_PRECOMPILE)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "REUSE" "")
  if(ARG_REUSE)
    target_precompile_headers(${target} REUSE_FROM ${ARG_REUSE})
  else()
    target_precompile_headers(${target} PRIVATE ${ARG_UNPARSED_ARGUMENTS})
  endif()
endfunction()

# Off for clang-tidy, which looks at each file.
option(WARPLINE_UNITY "Compile files of tests, and those that use CLI11, several at a time" ON)

set(WARPLINE_CUDA AUTO CACHE STRING "Compile the CUDA backend: AUTO (if a suitable nvcc works), ON or OFF")
set_property(CACHE WARPLINE_CUDA PROPERTY STRINGS AUTO ON OFF)
# A name rather than the list, so that a preset can ask for it whatever the cache holds.
set(WARPLINE_CUDA_ARCHITECTURES shipped CACHE STRING "As CMAKE_CUDA_ARCHITECTURES, or 'shipped'")
set(WARPLINE_CUBLAS_INCLUDE "" CACHE PATH "Headers of cuBLASLt, where the toolkit has none; the library itself is loaded at run time")
# gemm/wgmma.cu takes 6 s instead of 64, reduce/vectorized_i64.cu 13 instead of 27.
option(WARPLINE_CUDA_FAST_COMPILE "Hardly optimise CUDA code: to see that it compiles where nothing can run it" OFF)
include(WarplineNvcc)
set(WARPLINE_HAVE_CUDA OFF)
if(WARPLINE_CUDA STREQUAL OFF OR WARPLINE_CLIENT_ONLY)
  set(cuda "OFF as asked")
else()
  warpline_find_nvcc(nvcc problems)
  if(nvcc)
    set(CMAKE_CUDA_COMPILER ${nvcc})
    set(CMAKE_CUDA_ARCHITECTURES ${WARPLINE_CUDA_ARCHITECTURES})
    if(CMAKE_CUDA_ARCHITECTURES STREQUAL shipped)
      # 8.9 runs the code of 8.6: both have 1536 threads to a multiprocessor. sm_90a has Hopper's own instructions. PTX of
      # the highest one serves what comes after.
      set(CMAKE_CUDA_ARCHITECTURES 80-real 86-real 90a-real 100-real 120)
    endif()
    # Without Hopper's own instructions the row `wgmma` would have no kernel.
    if(CMAKE_CUDA_ARCHITECTURES MATCHES "(^|;)90(-real|-virtual)?(;|$)")
      message(FATAL_ERROR "WARPLINE_CUDA_ARCHITECTURES: for Hopper 90a, as 90a-real, instead of 90")
    endif()
    enable_language(CUDA)
    find_package(CUDAToolkit REQUIRED)
    set(WARPLINE_HAVE_CUDA ON)
    # CMake 3.25 does not know the standards of CUDA 13.
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    set(cuda_include ${CUDAToolkit_INCLUDE_DIRS} ${WARPLINE_CUBLAS_INCLUDE})
    list(JOIN CMAKE_CUDA_ARCHITECTURES " " cuda)
    set(cuda "${CUDAToolkit_VERSION} for ${cuda}")
    # A quarter of the default's size. The driver unpacks a file's code when the first of its kernels is loaded.
    add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--compress-mode=size>)
    if(WARPLINE_CUDA_FAST_COMPILE)
      add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:--Ofast-compile=max>)
      string(APPEND cuda ", hardly optimised")
    endif()
  elseif(WARPLINE_CUDA STREQUAL ON)
    message(FATAL_ERROR "WARPLINE_CUDA=ON, but ${problems}")
  else()
    set(cuda "OFF, as ${problems}")
  endif()
endif()

# Host sources that use CUDA or ask whether it is there. Only these are compiled anew when a build is switched to CUDA: the
# headers and the definition are theirs, and not their target's.
function(warpline_sees_cuda)
  if(WARPLINE_HAVE_CUDA)
    list(TRANSFORM cuda_include PREPEND -isystem OUTPUT_VARIABLE include)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_DEFINITIONS WARPLINE_HAVE_CUDA COMPILE_OPTIONS "${include}")
  endif()
endfunction()

option(WARPLINE_NVTX "NVTX ranges around the stages of a request (docs/profiling.md)" OFF)
if(WARPLINE_NVTX)
  find_package(CUDAToolkit REQUIRED)  # its headers only: also without the CUDA backend
  string(APPEND cuda ", NVTX ranges")
endif()
message(STATUS "warpline: CUDA ${cuda}")
