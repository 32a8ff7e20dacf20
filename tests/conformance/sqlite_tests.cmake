# What is particular to storage_sqlite. Include it after the plugins; it expects the target jobq_storage_sqlite,
# GTest::gtest_main, Threads::Threads and JOBQ_PLUGIN_OUTPUT. The schema's own functions are compiled in: steps that
# migrate exist in a test only, until there is a second one.
find_package(Poco REQUIRED COMPONENTS Data DataSQLite)
find_package(SQLite3 REQUIRED)
set(sqlite_plugin ${CMAKE_CURRENT_LIST_DIR}/../../plugins/storage_sqlite)

add_executable(jobq_sqlite_tests
  ${CMAKE_CURRENT_LIST_DIR}/sqlite_crash_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sqlite_disk_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sqlite_group_commit_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sqlite_schema_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/sqlite_vfs.cpp
  ${sqlite_plugin}/connection.cpp
  ${sqlite_plugin}/schema.cpp
  ${sqlite_plugin}/statement.cpp)
target_include_directories(jobq_sqlite_tests PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../..)
target_link_libraries(jobq_sqlite_tests PRIVATE jobq::testkit GTest::gtest_main Poco::Data Poco::DataSQLite
  SQLite::SQLite3 Threads::Threads ${CMAKE_DL_LIBS})
target_compile_definitions(jobq_sqlite_tests PRIVATE JOBQ_PLUGIN_DIR="${JOBQ_PLUGIN_OUTPUT}")
add_dependencies(jobq_sqlite_tests jobq_storage_sqlite)
add_test(NAME jobq_sqlite_tests COMMAND jobq_sqlite_tests)
