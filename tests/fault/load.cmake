# The client of tests/fault/test_load.py: many jobs over many connections, each answer compared with what was sent.
add_executable(fault_load_client fault/load_client.cpp)
target_link_libraries(fault_load_client PRIVATE Threads::Threads)
