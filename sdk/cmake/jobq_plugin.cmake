# jobq_add_plugin(<folder name> SOURCES a.cpp ... [LIBRARIES lib ...])
#
# Builds libjobq_<folder name>.so the way the server expects it: hidden visibility, one exported symbol, no undefined
# symbols, and the manifest of these sdk headers (jobq/abi.h). It lands in build/plugins, or in the project's own binary folder
# when jobq is used as an installed sdk.
function(jobq_add_plugin name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_library(jobq_${name} MODULE ${arg_SOURCES})
  target_link_libraries(jobq_${name} PRIVATE jobq::sdk ${arg_LIBRARIES})
  target_link_options(jobq_${name} PRIVATE -Wl,--no-undefined
    -Wl,--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map)
  set_target_properties(jobq_${name} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(DEFINED JOBQ_PLUGIN_OUTPUT)
    set_target_properties(jobq_${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${JOBQ_PLUGIN_OUTPUT})
  endif()
endfunction()
