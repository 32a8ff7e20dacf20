# The plugin host, over libraries with one fault each, and one good library.
set(fixtures ${CMAKE_BINARY_DIR}/tests/fixtures)

# jobq_add_fixture(<name> <source> [definition...]): libjobq_<name>.so in the folder of fixtures.
function(jobq_add_fixture name source)
  set(JOBQ_PLUGIN_OUTPUT ${fixtures})
  jobq_add_plugin(${name} SOURCES ${source})
  target_compile_definitions(jobq_${name}_objects PRIVATE ${ARGN})
endfunction()
jobq_add_fixture(good plugin_host/fixture_plugin.cpp)
jobq_add_fixture(other_major plugin_host/fixture_plugin.cpp FIXTURE_OTHER_MAJOR FIXTURE_CONSTRUCTOR)
jobq_add_fixture(other_mode plugin_host/fixture_plugin.cpp FIXTURE_CONSTRUCTOR _GLIBCXX_DEBUG)
jobq_add_fixture(no_symbol plugin_host/fixture_dependency.cpp)
add_library(jobqfixture_dependency SHARED plugin_host/fixture_dependency.cpp)
set_target_properties(jobqfixture_dependency PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
jobq_add_fixture(needy plugin_host/fixture_needy.cpp)
target_link_libraries(jobq_needy PRIVATE jobqfixture_dependency)
# Without an rpath, the needed library cannot be found when the plugin is loaded.
set_target_properties(jobq_needy PROPERTIES SKIP_BUILD_RPATH ON)
include(plugin_host/other_sdks.cmake)

# jobq_add_served_plugin(<name>): a sound plugin in a folder of its own, for a test of tests/http. These tests run under
# AddressSanitizer too, whose preset builds what is named to it.
function(jobq_add_served_plugin name)
  set(JOBQ_PLUGIN_OUTPUT ${CMAKE_BINARY_DIR}/tests/${name})
  jobq_add_plugin(${name} SOURCES plugin_host/fixture_${name}.cpp)
  set_property(GLOBAL APPEND PROPERTY jobq_programs_of_asan jobq_${name})
endfunction()
jobq_add_served_plugin(children)  # for tests/http/test_signals.py
# The storage `memory` with calls that wait, for tests/http/test_standstill.py.
jobq_add_served_plugin(paused)
target_include_directories(jobq_paused_objects PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/sdk
  ${PROJECT_SOURCE_DIR}/plugins/storage_memory)
target_sources(jobq_paused PRIVATE $<FILTER:$<TARGET_OBJECTS:jobq_storage_memory_objects>,EXCLUDE,/plugin[.]cpp[.]o$>)

jobq_add_test(plugin_host_test SMALL LABELS unit
  SOURCES plugin_host/plugin_host_test.cpp plugin_host/plugin_instances_test.cpp
  LIBRARIES jobq_core
  NEEDS jobq_lua jobq_good jobq_reworded jobq_other_layout jobq_newer_minor jobq_other_major jobq_other_mode
        jobq_no_symbol jobq_needy)
target_compile_definitions(plugin_host_test PRIVATE JOBQ_FIXTURE_DIR="${fixtures}")
