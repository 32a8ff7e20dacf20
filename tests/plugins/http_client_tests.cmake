# The tests of http_client, the outbound HTTP of three plugins, and of what the three share through it.
jobq_add_test(http_client_test SMALL LABELS unit tsan
  SOURCES
    plugins/curl_options.cpp
    plugins/failing_calls.cpp
    plugins/http_client_lacks_test.cpp
    plugins/http_client_parts_test.cpp
    plugins/http_client_test.cpp
    plugins/http_client_users_test.cpp
    support/scarce_memory.cpp
  LIBRARIES jobq_name_server jobq_http_client OpenSSL::SSL OpenSSL::Crypto
  NEEDS jobq_webhook_http jobq_handler_image jobq_lua)
# The program's own name server, record of options and failing connections, for libcurl and the plugins.
target_link_options(http_client_test PRIVATE
  LINKER:--export-dynamic-symbol=getaddrinfo LINKER:--export-dynamic-symbol=curl_easy_setopt
  LINKER:--export-dynamic-symbol=connect LINKER:--export-dynamic-symbol=curl_multi_add_handle)
target_include_directories(http_client_test PRIVATE ${PROJECT_SOURCE_DIR})
