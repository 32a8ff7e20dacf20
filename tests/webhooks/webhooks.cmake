# Webhook delivery over real storages, and its parts.
jobq_add_test(webhooks_test SMALL LABELS server tsan
  SOURCES webhooks/webhook_dispatcher_test.cpp webhooks/delivery_fault_test.cpp
  LIBRARIES jobq_faulty_storage jobq_core Poco::Foundation OpenSSL::Crypto
  NEEDS jobq_storage_memory jobq_storage_sqlite)
target_include_directories(webhooks_test PRIVATE ${PROJECT_SOURCE_DIR}/tests/webhooks ${PROJECT_SOURCE_DIR}/tests/fault)
