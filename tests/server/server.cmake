# The whole server in the test's own process, with plugins of its own.
set(server_fixtures ${CMAKE_BINARY_DIR}/tests/server_fixtures)
set(fixtures ${server_fixtures})
jobq_add_fixture(scripted server/scripted_handler.cpp)
jobq_add_fixture(broken_policy server/broken_policy.cpp)
jobq_add_fixture(size_filter server/size_filter.cpp)
jobq_add_test(server_test SMALL LABELS server tsan
  SOURCES
    server/server_filter_test.cpp
    server/server_limits_test.cpp
    server/server_openapi_test.cpp
    server/server_release_test.cpp
    server/server_scopes_test.cpp
    server/server_start_test.cpp
    server/server_stream_test.cpp
    server/server_test.cpp
    server/server_calls_test.cpp
  LIBRARIES jobq_core Poco::Net Poco::Foundation
  NEEDS ${JOBQ_PLUGINS} jobq_scripted jobq_broken_policy jobq_size_filter)
target_compile_definitions(server_test PRIVATE JOBQ_FIXTURE_DIR="${server_fixtures}")
