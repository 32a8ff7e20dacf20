# jobq_add_plugin(<folder name> SOURCES a.cpp ... [LIBRARIES lib ...])
#
# Builds the plugin library libjobq_<folder name>.so with hidden visibility, one exported symbol, no undefined symbols,
# and the manifest of these sdk headers (sdk/include/jobq/abi.h). The library is written to build/plugins, or to the
# project's own binary folder if jobq is an installed sdk. The target jobq_<folder name>_objects holds the compiled
# sources: unit tests link parts of a plugin without a second compilation.
function(jobq_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    message(WARNING "CMAKE_BUILD_TYPE is not set: the plugin ${name} is compiled without optimisation")
  endif()
  add_library(jobq_${name}_objects OBJECT ${arg_SOURCES})
  target_include_directories(jobq_${name}_objects INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(jobq_${name}_objects PUBLIC jobq::sdk ${arg_LIBRARIES})
  set_target_properties(jobq_${name}_objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)

  add_library(jobq_${name} MODULE $<TARGET_OBJECTS:jobq_${name}_objects>)
  set_target_properties(jobq_${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(jobq_${name} PRIVATE jobq::sdk ${arg_LIBRARIES})
  # clang puts the runtime of a sanitizer only into the program that opens the plugin.
  if(NOT (JOBQ_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES Clang))
    target_link_options(jobq_${name} PRIVATE -Wl,--no-undefined)
  endif()
  target_link_options(jobq_${name} PRIVATE
    -Wl,--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  if(DEFINED JOBQ_PLUGIN_OUTPUT)
    set_target_properties(jobq_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${JOBQ_PLUGIN_OUTPUT})
  endif()
endfunction()
