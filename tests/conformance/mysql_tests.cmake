# Tests of storage_mysql, on a database server that the test program starts. Left out on a machine without the server.
find_program(JOBQ_MARIADBD mariadbd PATHS /usr/sbin)
if(NOT JOBQ_PLUGIN_MYSQL OR NOT JOBQ_MARIADBD)
  jobq_add_test_objects(jobq_named_storages conformance/mysql_absent.cpp)
  target_include_directories(jobq_named_storages PUBLIC ${PROJECT_SOURCE_DIR})
  target_compile_definitions(jobq_named_storages PRIVATE JOBQ_PLUGIN_DIR="${JOBQ_PLUGIN_OUTPUT}")
  message(WARNING "storage_mysql_test is left out: it needs JOBQ_PLUGIN_MYSQL=ON and the program mariadbd, which "
    "scripts/setup.sh test installs")
  return()
endif()

# The plugin with the clock of the host: its other objects are those of the plugin that the server loads.
jobq_add_plugin(mysql_host_clock SOURCES conformance/mysql_host_clock.cpp LIBRARIES jobq_storage_sql PkgConfig::MARIADB)
target_include_directories(jobq_mysql_host_clock_objects PRIVATE ${PROJECT_SOURCE_DIR}/plugins/storage_mysql)
target_sources(jobq_mysql_host_clock PRIVATE
  $<FILTER:$<TARGET_OBJECTS:jobq_storage_mysql_objects>,EXCLUDE,/database_offset[.]cpp[.]o$>)
set_target_properties(jobq_mysql_host_clock PROPERTIES OUTPUT_NAME jobq_storage_mysql
  LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/mysql_host_clock)

# The parts of a test program that opens each storage by its name.
jobq_add_test_objects(jobq_named_storages conformance/mariadb_server.cpp conformance/mysql_present.cpp)
target_include_directories(jobq_named_storages PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(jobq_named_storages PUBLIC PkgConfig::MARIADB)
target_compile_definitions(jobq_named_storages PRIVATE JOBQ_PLUGIN_DIR="${JOBQ_PLUGIN_OUTPUT}"
  JOBQ_MYSQL_PLUGIN="${CMAKE_BINARY_DIR}/tests/mysql_host_clock/libjobq_storage_mysql.so")
add_dependencies(jobq_named_storages jobq_mysql_host_clock)

jobq_add_test(storage_mysql_test SMALL PARTS 2 LABELS contract tsan PROCESSORS 4
  SOURCES
    conformance/lockless_proxy.cpp
    conformance/mariadb_server.cpp
    conformance/mysql_checks_test.cpp
    conformance/mysql_clock_test.cpp
    conformance/mysql_connection_test.cpp
    conformance/mysql_discarded_chunks_test.cpp
    conformance/mysql_idle_test.cpp
    conformance/mysql_open_test.cpp
    conformance/mysql_processes_test.cpp
    conformance/mysql_rows_test.cpp
    conformance/mysql_sharing_test.cpp
    conformance/mysql_storage_test.cpp
    conformance/mysql_switch_test.cpp
    conformance/storage_peer.cpp
  LIBRARIES jobq_storage_mysql_objects PkgConfig::MARIADB
  NEEDS jobq_mysql_host_clock jobq_storage_mysql)
target_include_directories(storage_mysql_test PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(storage_mysql_test PRIVATE
  JOBQ_MYSQL_PLUGIN="${CMAKE_BINARY_DIR}/tests/mysql_host_clock/libjobq_storage_mysql.so")

# The pace of the storage beside that of its database (tests/bench/README.md).
add_executable(mysql_pace bench/mysql_pace.cpp conformance/mariadb_server.cpp)
target_include_directories(mysql_pace PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests/conformance)
target_compile_definitions(mysql_pace PRIVATE
  JOBQ_MYSQL_PLUGIN="$<TARGET_FILE:jobq_storage_mysql>")
target_link_libraries(mysql_pace PRIVATE jobq_storage_mysql_objects jobq::testkit jobq_gtest PkgConfig::MARIADB
  Threads::Threads ${CMAKE_DL_LIBS})
add_dependencies(mysql_pace jobq_storage_mysql)
