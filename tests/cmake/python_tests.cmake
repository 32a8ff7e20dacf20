# The tests in Python: each file is a test of CTest.

# Tests from outside, each file with a server of its own.
file(GLOB http_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} http/test_*.py)
foreach(file IN LISTS http_files)
  cmake_path(GET file STEM stem)
  string(REGEX REPLACE "^test_" "http." name ${stem})
  jobq_add_python_test(${name} ${file} LABELS http asan)
endforeach()
set_tests_properties(http.crowd http.head_memory http.too_large PROPERTIES PROCESSORS 4)
# Each of its tests may need several rounds (http/test_too_large.py).
math(EXPR jobq_longest_rounds "1500 * ${jobq_test_time}")
set_tests_properties(http.too_large PROPERTIES TIMEOUT ${jobq_longest_rounds})
# Pages build plugins for the server as users do, without sanitizers.
set_tests_properties(http.documents PROPERTIES LABELS http PROCESSORS 4)
# Mostly work of a browser. Under AddressSanitizer, http.docs asks for the same page.
set_tests_properties(http.docs_page PROPERTIES LABELS http PROCESSORS 2)
set_property(TEST http.strain http.tls http.framing http.lifecycle http.run http.run_wait APPEND PROPERTY LABELS tsan)

# The same tests over Poco's HTTP server (server.transport). CI has the calls with waits, streams, large bodies and refusals,
# where the transports differ most; `scripts/test.sh --poco` has all but framing, crowds, slow clients, the
# memory of heads, and tests without a server.
set(jobq_poco_lacks allocator crowd database_login decisions_addresses docs docs_page documents events_page framing head_memory
  jobqctl_connection malformed settings_page standstill strain too_large transport version)
foreach(file IN LISTS http_files)
  cmake_path(GET file STEM stem)
  string(REGEX REPLACE "^test_" "" stem ${stem})
  if(stem IN_LIST jobq_poco_lacks)
    continue()
  endif()
  set(label poco)
  if(stem MATCHES "^(api_errors|event_streams|payload|run|run_wait|tls)$")
    set(label http)
  endif()
  jobq_add_python_test(poco.${stem} http/test_${stem}.py LABELS ${label} ENVIRONMENT JOBQ_TRANSPORT=poco)
endforeach()

foreach(stem backup disk refused_start)
  jobq_add_python_test(fault.${stem} fault/test_${stem}.py LABELS fault)
endforeach()
# Loads: the clients take up to a processor, and so does the server. test_order.cmake has those that mostly wait.
foreach(stem backlog fair_share limits_load load memory_attacks release_load storm waits)
  jobq_add_python_test(fault.${stem} fault/test_${stem}.py LABELS fault PROCESSORS 4)
endforeach()

# Three database servers, HAProxy and three nodes.
jobq_add_python_test(cluster.galera cluster/test_galera.py LABELS fault TIMEOUT 600 PROCESSORS 8)
jobq_add_python_test(cluster.script cluster/test_cluster_script.py LABELS fault PROCESSORS 4)

file(GLOB arch_files CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} arch/test_*.py arch/*_test.py)
foreach(file IN LISTS arch_files)
  cmake_path(GET file STEM stem)
  string(REGEX REPLACE "_?test_?" "" name ${stem})
  jobq_add_python_test(arch.${name} ${file} LABELS arch)
endforeach()
# Tests with thousands of connections or gigabytes of bodies: one test at a time, to bound the memory.
set_tests_properties(http.crowd http.too_large fault.backlog fault.load fault.memory_attacks fault.waits PROPERTIES RESOURCE_LOCK memory)

# A mixed load over some time, half a minute of it in CI: JOBQ_SOAK_MINUTES.
jobq_add_python_test(fault.soak fault/soak.py LABELS fault TIMEOUT 600)

jobq_add_python_test(client.s3 s3/s3_test.py LABELS client)
jobq_add_python_test(client.openapi openapi/openapi_test.py LABELS client PROCESSORS 4)
jobq_add_python_test(client.generated openapi/generated_test.py LABELS client PROCESSORS 4)
