# The programs of tests/bench/bench.py.
add_executable(bench_load bench/load.cpp bench/closed_loop.cpp)
add_executable(bench_bare bench/bare_server.cpp)
target_link_libraries(bench_bare PRIVATE Poco::Net Poco::Foundation)
add_executable(bench_gearman_worker bench/gearman_worker.cpp)
target_link_libraries(bench_gearman_worker PRIVATE Threads::Threads)
