# Several servers on one storage, in the test's own process. Each test takes seconds, so each is a test of CTest: beside
# other work all of them together took 260 s, and a time limit is for a single hang.
jobq_add_test(cluster_test LABELS server tsan
  SOURCES cluster/two_servers_test.cpp cluster/remote_workers_test.cpp cluster/unheard_jobs_test.cpp
  LIBRARIES jobq_core jobq_faulty_storage jobq_storage_memory_objects Poco::Net Poco::Foundation
  NEEDS ${JOBQ_PLUGINS})

# Real nodes: several processes on a MariaDB server of the test.
jobq_add_python_test(cluster.history_rules cluster/test_history_rules.py LABELS unit)
jobq_add_python_test(cluster.parts cluster/test_parts.py LABELS unit)
foreach(stem database_faults database_switch kill_matrix remote_workers shared_work)
  jobq_add_python_test(cluster.${stem} cluster/test_${stem}.py LABELS fault PROCESSORS 4)
endforeach()
