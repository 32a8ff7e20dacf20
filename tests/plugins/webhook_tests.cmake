# The tests of webhook_http and webhook_file.
jobq_add_test(jobq_webhook_tests SMALL LABELS contract tsan
  SOURCES
    plugins/webhook_file_test.cpp
    plugins/webhook_http_hostile_test.cpp
    plugins/webhook_http_kept_test.cpp
    plugins/webhook_http_memory_test.cpp
    plugins/webhook_http_test.cpp
    plugins/webhook_http_tls_test.cpp
    plugins/webhook_syncs.cpp
    plugins/webhook_transports_test.cpp
  LIBRARIES jobq_name_server OpenSSL::SSL OpenSSL::Crypto
  NEEDS jobq_webhook_http jobq_webhook_file)
# The program's own name server and fsync, for libcurl and the plugins.
target_link_options(jobq_webhook_tests PRIVATE
  LINKER:--export-dynamic-symbol=getaddrinfo LINKER:--export-dynamic-symbol=fsync)
