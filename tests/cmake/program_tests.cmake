# Tests that are programs and scripts of their own.

# Fuzzing: clang builds each target by itself (fuzz/run.sh).
foreach(target request_head chunk_reader target json_scan submission policy webhook_url net_guard lua_pattern lua_bridge)
  add_test(NAME fuzz.${target} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/run.sh ${target})
  set_tests_properties(fuzz.${target} PROPERTIES LABELS fuzz TIMEOUT ${jobq_longest_proof} PROCESSORS 4)
endforeach()

# clang's warnings and its analysis of guards by mutexes (-Wthread-safety) on every source: clang builds the preset asan,
# and this test builds what the programs under AddressSanitizer do not need.
add_test(NAME analysis.thread_safety COMMAND bash -c
  "cmake --preset asan -DJOBQ_WERROR=ON && cmake --build build/asan")
# The format of the sources.
add_test(NAME analysis.format COMMAND bash -c
  "git ls-files '*.h' '*.cpp' | xargs clang-format-14 --dry-run -Werror")
set_tests_properties(analysis.thread_safety analysis.format PROPERTIES
  LABELS analysis TIMEOUT 1800 PROCESSORS 8 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})

# First steps of users: the demo, and a project of their own with the sdk alone.
add_test(NAME client.demo COMMAND ${PROJECT_SOURCE_DIR}/scripts/run.sh --demo)
set_tests_properties(client.demo PROPERTIES LABELS client TIMEOUT 300 RUN_SERIAL ON)
jobq_add_python_test(client.install clients/test_install.py LABELS client PROCESSORS 4)
# Streams of public clients: 50 chunks a second each, too many for a busy machine.
jobq_add_python_test(client.openai clients/test_openai_clients.py LABELS client PROCESSORS 4)
jobq_add_python_test(client.streams clients/test_streams.py LABELS client PROCESSORS 4)
# Workers and clients of PyPI. Those without PROCESSORS mostly wait (test_order.cmake).
jobq_add_python_test(client.runpod_workers clients/test_runpod_workers.py LABELS client PROCESSORS 4)
jobq_add_python_test(client.runpod_launcher clients/test_runpod_launcher.py LABELS client)
jobq_add_python_test(client.runpod_stops clients/test_runpod_stops.py LABELS client)
jobq_add_python_test(client.runpod_connections clients/test_runpod_connections.py LABELS client PROCESSORS 1)
jobq_add_python_test(nightly.runpod_connections clients/test_runpod_connections.py LABELS nightly PROCESSORS 8
  TIMEOUT 1800 ENVIRONMENT JOBQ_TEST_WORKERS=all)
jobq_add_python_test(client.generated_remote clients/test_generated_clients.py LABELS client PROCESSORS 4)
jobq_add_python_test(client.operations clients/test_operations.py LABELS client)

# Each header compiled alone, with the options of the build without unity (scripts/test.sh --nightly makes it).
add_test(NAME nightly.headers COMMAND ${JOBQ_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/arch/headers_alone.py
  ${PROJECT_SOURCE_DIR}/build/plain)
set_tests_properties(nightly.headers PROPERTIES LABELS nightly TIMEOUT 3600 PROCESSORS 4)

# Paces, meaningful only on a machine without other work: tests/bench/README.md.
add_test(NAME pace.tests COMMAND ${JOBQ_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/bench/pace.py)
add_test(NAME pace.bench COMMAND ${JOBQ_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/bench/bench.py)
set_tests_properties(pace.tests pace.bench PROPERTIES
  LABELS "pace;bench" TIMEOUT ${jobq_longest_proof} RUN_SERIAL ON)
