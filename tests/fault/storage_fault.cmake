# The storage fault proof: the whole server over a storage that fails its k-th call, for every k. Include this file
# after the plugins and jobq_add_test.
jobq_add_test(storage_fault_test LABELS fault tsan
  SOURCES fault/storage_fault_test.cpp fault/storage_outage_test.cpp fault/operation_outage_test.cpp
  LIBRARIES jobq_faulty_storage jobq_named_storages jobq_core Poco::Net Poco::Foundation
  NEEDS ${JOBQ_PLUGINS})

# Records alone, over the same faults and over faults of a disk.
jobq_add_test(record_fault_test LABELS fault SOURCES fault/record_fault_test.cpp
  LIBRARIES jobq_faulty_storage jobq_model jobq_disk jobq_named_storages NEEDS ${JOBQ_PLUGINS} PROPERTIES COST 90)

# Templates and endpoints over such a storage: each call of their operations fails in its turn.
jobq_add_test(management_outage_test LABELS fault
  SOURCES fault/management_outage_test.cpp fault/management_race_test.cpp
  LIBRARIES jobq_faulty_storage jobq_named_storages jobq_core Poco::Net Poco::Foundation
  NEEDS ${JOBQ_PLUGINS})
