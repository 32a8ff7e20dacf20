# The client of tests/fault/test_load.py: many jobs over many connections, each answer compared with the sent job.
add_executable(fault_load_client fault/load_client.cpp)
target_link_libraries(fault_load_client PRIVATE jobq::testkit Threads::Threads)
# The client of tests/fault/test_limits_load.py: many callers at full speed, and the time of each answer.
add_executable(fault_limits_client fault/limits_client.cpp)
