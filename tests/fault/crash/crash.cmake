# The crash proof: a program that kills the server over and over, the tests of its checker, and the handler for both.
# Include this file after the plugins; required are jobq_add_plugin, jobq_add_test, JOBQ_PLUGINS and JOBQ_PLUGIN_OUTPUT.
set(crash_folder ${CMAKE_CURRENT_LIST_DIR})
set(crash_plugins ${CMAKE_BINARY_DIR}/tests/witness)

function(jobq_add_witness)
  set(JOBQ_PLUGIN_OUTPUT ${crash_plugins})
  jobq_add_plugin(handler_witness SOURCES ${crash_folder}/witness_handler.cpp)
endfunction()
jobq_add_witness()

add_library(jobq_crash_history STATIC
  ${crash_folder}/absence_rules.cpp
  ${crash_folder}/history.cpp
  ${crash_folder}/history_rules.cpp
  ${crash_folder}/history_text.cpp
  ${crash_folder}/journal.cpp
  ${crash_folder}/webhook_calls.cpp
  ${crash_folder}/call_file.cpp
  ${crash_folder}/stream_rules.cpp
  ${crash_folder}/totals.cpp)
target_link_libraries(jobq_crash_history PUBLIC jobq::sdk)

jobq_add_test(history_test SMALL LABELS unit SOURCES ${crash_folder}/history_test.cpp ${crash_folder}/operation_rules_test.cpp LIBRARIES jobq_crash_history)

add_executable(crash_loop
  ${crash_folder}/board.cpp
  ${crash_folder}/clients.cpp
  ${crash_folder}/crash_loop.cpp
  ${crash_folder}/http_client.cpp
  ${crash_folder}/options.cpp
  ${crash_folder}/server_process.cpp)
target_link_libraries(crash_loop PRIVATE jobq_crash_history jobq::testkit Threads::Threads)
target_compile_definitions(crash_loop PRIVATE
  JOBQ_BINARY_DIR="${CMAKE_BINARY_DIR}/bin" JOBQ_PLUGIN_DIR="${JOBQ_PLUGIN_OUTPUT}" JOBQ_WITNESS_DIR="${crash_plugins}")
add_dependencies(crash_loop jobqd jobq_handler_witness ${JOBQ_PLUGINS})

# The short form of the proof, and the same loop over a storage that forgets claims; the proof has to find this fault.
add_test(NAME crash_loop COMMAND crash_loop --cycles 25)
add_test(NAME crash_loop.finds_forgotten_claims
  COMMAND crash_loop --plugins ${CMAKE_BINARY_DIR}/tests/broken/forget_claims --expect-violation)
add_test(NAME crash_loop.long COMMAND crash_loop --cycles 1000)
set_tests_properties(crash_loop.long PROPERTIES LABELS nightly TIMEOUT 36000 RUN_SERIAL ON)
set_tests_properties(crash_loop crash_loop.finds_forgotten_claims PROPERTIES LABELS fault TIMEOUT 600 PROCESSORS 4)
