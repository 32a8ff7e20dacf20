# The client of tests/fault/test_load.py: many jobs over many connections, each answer compared with what was sent.
add_executable(fault_load_client fault/load_client.cpp)
target_link_libraries(fault_load_client PRIVATE Threads::Threads)
# The client of tests/fault/test_limits_load.py: many callers who do not slow down, and when each was answered.
add_executable(fault_limits_client fault/limits_client.cpp)
