# The whole server in the test's own process, with plugins of its own.
set(house_fixtures ${CMAKE_BINARY_DIR}/tests/house_fixtures)
set(fixtures ${house_fixtures})
jobq_add_fixture(scripted house/scripted_handler.cpp)
jobq_add_fixture(broken_policy house/broken_policy.cpp)
jobq_add_fixture(size_filter house/size_filter.cpp)
jobq_add_test(house_test LABELS server tsan
  SOURCES
    house/house_filter_test.cpp
    house/house_limits_test.cpp
    house/house_openapi_test.cpp
    house/house_release_test.cpp
    house/house_stream_test.cpp
    house/house_test.cpp
    house/house_verbs_test.cpp
  LIBRARIES jobq_core Poco::Net Poco::Foundation
  NEEDS ${JOBQ_PLUGINS} jobq_scripted jobq_broken_policy jobq_size_filter)
target_compile_definitions(house_test PRIVATE JOBQ_FIXTURE_DIR="${house_fixtures}")
