# Tests of storage_sqlite. The parts of the plugin are linked in, because the steps of a migration are tested alone.
jobq_add_test(jobq_sqlite_tests SMALL PARTS 2 LABELS contract tsan
  SOURCES
    conformance/counted_calls.cpp
    conformance/page_builder_test.cpp
    conformance/sqlite_adopt_test.cpp
    conformance/sqlite_backup_test.cpp
    conformance/sqlite_bodies_test.cpp
    conformance/sqlite_body_damage_test.cpp
    conformance/sqlite_brief_jobs_test.cpp
    conformance/sqlite_crash_test.cpp
    conformance/sqlite_discarded_chunks_test.cpp
    conformance/sqlite_disk_test.cpp
    conformance/sqlite_ended_jobs_test.cpp
    conformance/sqlite_group_commit_test.cpp
    conformance/sqlite_late_commit_test.cpp
    conformance/sqlite_later_writes_test.cpp
    conformance/sqlite_listing_test.cpp
    conformance/sqlite_log_writes_test.cpp
    conformance/sqlite_page_cache_test.cpp
    conformance/sqlite_passing_faults_test.cpp
    conformance/sqlite_removal_hold_test.cpp
    conformance/sqlite_schema_test.cpp
    conformance/sqlite_shrink_test.cpp
    conformance/sqlite_statements_test.cpp
    conformance/sqlite_unlisted_jobs_test.cpp
    conformance/sqlite_vfs.cpp
    conformance/sqlite_work.cpp
    conformance/sqlite_work_test.cpp
    conformance/sqlite_unsynced_ends_test.cpp
    conformance/sqlite_writer_test.cpp
  LIBRARIES jobq_query_plans jobq_storage_sqlite_objects
  NEEDS jobq_storage_sqlite)
target_include_directories(jobq_sqlite_tests PRIVATE ${PROJECT_SOURCE_DIR})

# Functions of query_plans.cpp and counted_calls.cpp, for the plugin's library too.
foreach(symbol sqlite3_prepare_v3 sched_yield posix_fadvise)
  target_link_options(jobq_sqlite_tests PRIVATE LINKER:--export-dynamic-symbol=${symbol})
endforeach()

# A program of its own: the tests replace operator new.
jobq_add_test(sqlite_memory_faults_test SMALL LABELS contract
  SOURCES conformance/sqlite_memory_faults_test.cpp conformance/sqlite_vfs.cpp support/scarce_memory.cpp
  LIBRARIES jobq_storage_sqlite_objects
  NEEDS jobq_storage_sqlite)
target_include_directories(sqlite_memory_faults_test PRIVATE ${PROJECT_SOURCE_DIR})
