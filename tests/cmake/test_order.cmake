# The order of the tests. CTest begins with the highest COST; without one, the order is that of the files. A long test that
# begins last would run alone while processors are idle, so each COST is 100 and the seconds that the test took beside
# others in the tier CI (2026-11-29, two cores). Programs with many small tests have 100 (jobq_test.cmake).
set(jobq_long_tests
  cluster.database_faults 96 arch.abi 81 http.launcher_real_docker 60 http.documents 56
  cluster.kill_matrix 52 client.runpod_workers 49 client.runpod_connections 31 client.runpod_stops 47 fault.soak 41 http.jobq_worker 40
  cluster.remote_workers 36 http.jobq_worker_isolation 36 http.strain 36 fault.limits_load 34 fault.memory_attacks 31
  http.lua_endless 29
  http.too_large 28 http.launchers 28 client.streams 26 client.openapi 25 client.runpod_launcher 25 fault.disk 25
  http.crowd 24 cluster.shared_work 24 http.lifecycle 22 client.operations 21 http.lua_filters 21 http.head_memory 21
  http.launcher_docker 20 client.generated_remote 17 http.decisions_addresses 16 fault.load 14 client.install 14
  http.api_limits 13 http.allocator 13 http.endpoint_removal 12 fault.refused_start 12 cluster.script 11
  http.endpoint_rules 11 fault.waits 11)
while(jobq_long_tests)
  list(POP_FRONT jobq_long_tests test seconds)
  math(EXPR cost "100 + ${seconds}")
  set_tests_properties(${test} PROPERTIES COST ${cost})
endwhile()
# These mostly wait: for limits of time, for processes that end, for databases.
set_tests_properties(client.operations client.runpod_launcher client.runpod_stops cluster.database_faults cluster.remote_workers
  fault.limits_load fault.memory_attacks fault.soak fault.waits http.api_limits http.decisions_addresses
  http.jobq_worker http.jobq_worker_isolation http.launcher_docker http.launcher_real_docker http.launchers
  http.lifecycle http.strain PROPERTIES PROCESSORS 1)
# Last, while little else runs: three database servers of this test agree on a majority.
set_tests_properties(cluster.galera PROPERTIES COST -1)
