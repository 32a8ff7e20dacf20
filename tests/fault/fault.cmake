# Tests with failures of disks, power, storages and processes.
include(fault/broken.cmake)

# SQLite takes a page cache only before its first use, so the disk installs the one of the plugin.
add_library(jobq_disk STATIC fault/disk.cpp ${PROJECT_SOURCE_DIR}/plugins/storage_sqlite/disk/page_cache.cpp)
target_include_directories(jobq_disk PUBLIC ${CMAKE_CURRENT_LIST_DIR}
  PRIVATE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/plugins/storage_sqlite)
target_link_libraries(jobq_disk PUBLIC jobq::sdk SQLite::SQLite3)

jobq_add_test(power_loss_test OPTIMISED LABELS fault tsan SOURCES fault/power_loss_test.cpp LIBRARIES jobq_model jobq_disk
  NEEDS ${JOBQ_PLUGINS} jobq_broken_no_fsync jobq_broken_late_fsync jobq_broken_no_body_sync)
target_compile_definitions(power_loss_test PRIVATE JOBQ_BROKEN_DIR="${CMAKE_BINARY_DIR}/tests/broken")

jobq_add_test(io_error_test LABELS fault SOURCES fault/io_error_test.cpp
  LIBRARIES jobq_disk jobq_core Poco::Net Poco::Foundation NEEDS ${JOBQ_PLUGINS} PROPERTIES COST 80)
include(fault/crash/crash.cmake)
include(fault/load.cmake)
include(fault/storage_fault.cmake)

jobq_add_test(simulation_test OPTIMISED LABELS property
  SOURCES property/simulation/simulation_test.cpp property/simulation/simulation.cpp property/simulation/simulation_rest.cpp
          property/simulation/clients.cpp property/simulation/cluster.cpp property/simulation/outside.cpp
          property/simulation/handler_rules.cpp property/simulation/job_rules.cpp property/simulation/life_rules.cpp
          property/simulation/moves.cpp property/simulation/observer.cpp property/simulation/process.cpp
          property/simulation/twins.cpp property/simulation/wire.cpp
          property/simulation/workers.cpp property/simulation/world.cpp
  LIBRARIES jobq_model jobq_disk jobq_core jobq_storage_memory_objects
  NEEDS ${JOBQ_PLUGINS} jobq_broken_no_fencing jobq_broken_no_delivery_fencing jobq_broken_late_fsync
  PROPERTIES COST 90)
target_compile_definitions(simulation_test PRIVATE JOBQ_BROKEN_DIR="${CMAKE_BINARY_DIR}/tests/broken")
