# The tests of webhook_http and webhook_file. Include it after the plugins; it expects the targets jobq_webhook_http,
# jobq_webhook_file, GTest::gtest_main and GTest::gmock, and JOBQ_PLUGIN_OUTPUT.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)

add_executable(jobq_webhook_tests
  ${CMAKE_CURRENT_LIST_DIR}/webhook_file_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/webhook_http_hostile_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/webhook_http_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/webhook_http_tls_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/name_server.cpp
  ${CMAKE_CURRENT_LIST_DIR}/webhook_syncs.cpp
  ${CMAKE_CURRENT_LIST_DIR}/webhook_transports_test.cpp)
target_link_libraries(jobq_webhook_tests PRIVATE jobq::testkit GTest::gtest_main GTest::gmock OpenSSL::SSL
  OpenSSL::Crypto Threads::Threads ${CMAKE_DL_LIBS})
target_compile_definitions(jobq_webhook_tests PRIVATE JOBQ_PLUGIN_DIR="${JOBQ_PLUGIN_OUTPUT}")
# The program's own name server and fsync, for libcurl and the plugins.
target_link_options(jobq_webhook_tests PRIVATE
  LINKER:--export-dynamic-symbol=getaddrinfo LINKER:--export-dynamic-symbol=fsync)
add_dependencies(jobq_webhook_tests jobq_webhook_http jobq_webhook_file)
add_test(NAME jobq_webhook_tests COMMAND jobq_webhook_tests)
