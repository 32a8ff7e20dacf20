# The tests of launcher_process.
jobq_add_test(launcher_test SMALL LABELS contract tsan
  SOURCES
    conformance/launcher_test.cpp
  LIBRARIES jobq_launcher_process_objects
  NEEDS jobq_launcher_process)
