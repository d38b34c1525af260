# The library warpline_version: the version, from project(), and the git revision, looked up whenever something is built
# and not when CMake last ran, with -dirty where files differ from it. One small file is compiled anew when it changes.
# A tarball of `git archive` has its commit in revision.txt. -DWARPLINE_REVISION overrides all of this.
#
# Also the script that a build runs: cmake -D SOURCE=... -D OUTPUT=... -D VERSION=... -D REVISION=... -P WarplineVersion.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  if(NOT REVISION)
    # The commit, if these sources are all of a repository, and not unpacked somewhere below another one.
    set(git git --no-optional-locks)
    execute_process(COMMAND ${git} rev-parse --short=12 --show-prefix HEAD WORKING_DIRECTORY ${SOURCE}
                    OUTPUT_VARIABLE commit ERROR_QUIET RESULT_VARIABLE failed)
    if("${failed}" STREQUAL 0 AND commit MATCHES "^\n([0-9a-f]+)\n$")
      set(REVISION ${CMAKE_MATCH_1})
      # Missing files do not count: an image is built from some of them, and a build that needs one fails without.
      execute_process(COMMAND ${git} diff --quiet --diff-filter=d HEAD WORKING_DIRECTORY ${SOURCE} ERROR_QUIET
                      RESULT_VARIABLE dirty)
      if(dirty)
        string(APPEND REVISION -dirty)
      endif()
    else()
      # `git archive` puts the commit into this file.
      file(READ ${SOURCE}/cmake/revision.txt archived)
      string(REGEX MATCH "^[0-9a-f]+" REVISION "${archived}")
      string(SUBSTRING "${REVISION}" 0 12 REVISION)
      if(NOT REVISION)
        set(REVISION unknown)
      endif()
    endif()
  endif()
  string(CONCAT content
         "#include \"cmake/version.h\"\n\nnamespace warpline {\n\nconst char kVersion[] = \"${VERSION}\";\n"
         "const char kRevision[] = \"${REVISION}\";\n\n}  // namespace warpline\n")
  # Leaves the file alone, and what depends on it, if nothing has changed.
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "${content}" @ONLY)
  return()
endif()

set(WARPLINE_REVISION "" CACHE STRING "What --version calls the sources; empty: git's revision")
set(version_source ${PROJECT_BINARY_DIR}/version/version.cc)
add_custom_target(warpline_revision
  COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D OUTPUT=${version_source} -D VERSION=${PROJECT_VERSION}
          -D REVISION=${WARPLINE_REVISION} -P ${CMAKE_CURRENT_LIST_FILE}
  BYPRODUCTS ${version_source} COMMENT "" VERBATIM)
add_library(warpline_version STATIC ${version_source})
add_dependencies(warpline_version warpline_revision)
target_include_directories(warpline_version PUBLIC ${PROJECT_SOURCE_DIR})
