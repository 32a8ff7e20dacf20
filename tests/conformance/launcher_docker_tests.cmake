# The tests of launcher_docker: its contract with a fake of Docker (support/fake_docker.py), and its parts.
jobq_add_test(launcher_docker_test SMALL PARTS 2 TIMEOUT 600 PROCESSORS 1 LABELS contract tsan
  SOURCES
    conformance/fake_docker.cpp
    conformance/launcher_docker_calls_test.cpp
    conformance/launcher_docker_test.cpp
  LIBRARIES jobq_launcher_docker_objects
  NEEDS jobq_launcher_docker)
jobq_add_test(launcher_docker_parts_test SMALL LABELS unit tsan
  SOURCES
    plugins/launcher_docker_parts_test.cpp
    plugins/launcher_docker_table_test.cpp
  LIBRARIES jobq_launcher_docker_objects)
