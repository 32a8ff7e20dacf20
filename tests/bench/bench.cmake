# The programs of tests/bench/bench.py.
add_executable(bench_load bench/load.cpp bench/closed_loop.cpp)
add_executable(bench_bare bench/bare_server.cpp)
target_link_libraries(bench_bare PRIVATE Poco::Net Poco::Foundation)
add_executable(bench_receiver bench/webhook_receiver.cpp)
add_executable(bench_gearman_worker bench/gearman_worker.cpp)
target_link_libraries(bench_gearman_worker PRIVATE Threads::Threads)

# The scaler, played over a day. scaler_test uses the same model.
add_library(jobq_pool_model STATIC bench/worker_pool_model.cpp bench/day_load.cpp)
target_include_directories(jobq_pool_model PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(jobq_pool_model PUBLIC jobq_core)
add_executable(scaler_day bench/scaler_day.cpp)
target_link_libraries(scaler_day PRIVATE jobq_pool_model)
add_test(NAME scaler_day COMMAND scaler_day --check)
set_tests_properties(scaler_day PROPERTIES LABELS property TIMEOUT 300)
