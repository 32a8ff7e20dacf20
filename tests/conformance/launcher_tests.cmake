# The tests of launcher_process. The parts of the plugin are linked in, because some are tested alone.
jobq_add_test(launcher_test SMALL LABELS contract tsan
  SOURCES
    conformance/launcher_death_test.cpp
    conformance/launcher_process_test.cpp
    conformance/launcher_test.cpp
    plugins/launcher_parts_test.cpp
  LIBRARIES jobq_launcher_process_objects
  NEEDS jobq_launcher_process launcher_holder)
# A process with workers, for a test that kills it.
add_executable(launcher_holder conformance/launcher_holder.cpp)
target_link_libraries(launcher_holder PRIVATE jobq::testkit Threads::Threads ${CMAKE_DL_LIBS})
target_compile_definitions(launcher_holder PRIVATE JOBQ_PLUGIN_DIR="${JOBQ_PLUGIN_OUTPUT}")
add_dependencies(launcher_holder jobq_launcher_process)
target_compile_definitions(launcher_test PRIVATE JOBQ_LAUNCHER_HOLDER="$<TARGET_FILE:launcher_holder>")
