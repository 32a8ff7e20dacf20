# The model of a storage, its judge, and the tests played against both.
add_library(jobq_model STATIC property/model_state.cpp property/job_model.cpp property/lease_model.cpp property/chunk_model.cpp
  property/outbox_model.cpp property/record_model.cpp property/comparison.cpp property/judge.cpp property/judged_jobs.cpp
  property/judged_leases.cpp property/judged_chunks.cpp property/judged_outbox.cpp property/judged_records.cpp
  property/random_leases.cpp property/random_operations.cpp property/text.cpp)
target_include_directories(jobq_model PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(jobq_model PUBLIC jobq::testkit)

jobq_add_test(storage_property_test OPTIMISED LABELS property SOURCES property/storage_property_test.cpp
  LIBRARIES jobq_model jobq_named_storages
  NEEDS ${JOBQ_PLUGINS} PROPERTIES COST 120)
jobq_add_test(record_property_test OPTIMISED LABELS property SOURCES property/record_property_test.cpp
  LIBRARIES jobq_model jobq_named_storages
  NEEDS ${JOBQ_PLUGINS})
jobq_add_test(limiter_property_test OPTIMISED LABELS property SOURCES property/limiter_property_test.cpp NEEDS ${JOBQ_PLUGINS})
