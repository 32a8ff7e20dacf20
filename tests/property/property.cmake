# The model of a storage, its judge, and the tests played against both.
add_library(jobq_model STATIC property/storage_model.cpp property/storage_model_owed.cpp property/storage_model_runs.cpp
  property/record_model.cpp property/judge.cpp property/judge_records.cpp property/random_operations.cpp property/text.cpp)
target_include_directories(jobq_model PUBLIC ${CMAKE_CURRENT_LIST_DIR})
target_link_libraries(jobq_model PUBLIC jobq::testkit)

jobq_add_test(storage_property_test OPTIMISED LABELS property SOURCES property/storage_property_test.cpp LIBRARIES jobq_model
  NEEDS ${JOBQ_PLUGINS})
jobq_add_test(record_property_test OPTIMISED LABELS property SOURCES property/record_property_test.cpp LIBRARIES jobq_model
  NEEDS ${JOBQ_PLUGINS})
jobq_add_test(limiter_property_test OPTIMISED LABELS property SOURCES property/limiter_property_test.cpp NEEDS ${JOBQ_PLUGINS})
