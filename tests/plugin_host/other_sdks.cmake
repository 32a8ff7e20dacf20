# Copies of the sdk's headers with one change each (tests/plugin_host/make_sdk.py), the fixtures built against the
# copies, and a host of the next minor version.
set(sdk_headers ${PROJECT_SOURCE_DIR}/sdk/include/jobq)
list(TRANSFORM JOBQ_SDK_HEADERS REPLACE "(.+)" "${sdk_headers}/\\1.h" OUTPUT_VARIABLE sdk_files)
function(jobq_copy_sdk change)
  set(copy ${CMAKE_BINARY_DIR}/tests/sdk/${change})
  add_custom_command(OUTPUT ${copy}/jobq/abi.h
    COMMAND python3 ${CMAKE_CURRENT_LIST_DIR}/make_sdk.py ${sdk_headers} ${copy}/jobq ${change}
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/make_sdk.py ${sdk_files} VERBATIM)
  add_custom_target(sdk_${change} DEPENDS ${copy}/jobq/abi.h)
  add_dependencies(generated_sources sdk_${change})
endfunction()
function(jobq_use_sdk target change)
  add_dependencies(${target} sdk_${change})
  target_include_directories(${target} BEFORE PRIVATE ${CMAKE_BINARY_DIR}/tests/sdk/${change})
endfunction()
jobq_copy_sdk(reworded)
jobq_copy_sdk(next)
jobq_copy_sdk(other_layout)

jobq_add_fixture(reworded plugin_host/fixture_plugin.cpp)
jobq_use_sdk(jobq_reworded_objects reworded)
jobq_add_fixture(other_layout plugin_host/fixture_plugin.cpp FIXTURE_CONSTRUCTOR)
jobq_use_sdk(jobq_other_layout_objects other_layout)
jobq_add_fixture(newer_minor plugin_host/fixture_plugin.cpp FIXTURE_CONSTRUCTOR)
jobq_use_sdk(jobq_newer_minor_objects next)
jobq_add_fixture(next_minor plugin_host/fixture_summary.cpp)
jobq_use_sdk(jobq_next_minor_objects next)

# The host's own sources again, because its minor version is a constant of the headers.
set(host ${PROJECT_SOURCE_DIR}/core)
jobq_add_test(next_minor_test LABELS unit
  SOURCES plugin_host/next_minor_test.cpp ${host}/plugin/plugin_config.cpp ${host}/plugin/plugin_file.cpp
          ${host}/plugin/plugin_host.cpp ${host}/config/mistakes.cpp ${host}/config/units.cpp
  LIBRARIES PkgConfig::ELF Boost::filesystem Boost::system Poco::Foundation
  NEEDS jobq_good jobq_next_minor)
jobq_use_sdk(next_minor_test next)
target_include_directories(next_minor_test PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(next_minor_test PRIVATE JOBQ_FIXTURE_DIR="${fixtures}")
# The precompiled headers belong to the present sdk.
set_target_properties(next_minor_test PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
