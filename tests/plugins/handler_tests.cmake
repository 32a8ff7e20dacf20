# The tests of handler_trial and handler_image, and the tool that runs one job without a server. Include it after the
# plugins; it expects the targets jobq_handler_trial, jobq_handler_image, GTest::gtest_main and GTest::gmock, and JOBQ_PLUGIN_OUTPUT.
find_package(PkgConfig REQUIRED)
pkg_check_modules(GDLIB REQUIRED IMPORTED_TARGET gdlib)
find_package(Threads REQUIRED)
include(GoogleTest)

add_executable(jobq_handler_tests
  ${CMAKE_CURRENT_LIST_DIR}/handler_image_fetch_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/handler_image_hostile_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/handler_image_s3_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/handler_image_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/handler_trial_test.cpp
  ${CMAKE_CURRENT_LIST_DIR}/name_server.cpp
  ${CMAKE_CURRENT_LIST_DIR}/../../plugins/handler_image/base64.cpp)
target_include_directories(jobq_handler_tests PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../../plugins/handler_image)
target_link_libraries(jobq_handler_tests PRIVATE jobq::testkit GTest::gtest_main GTest::gmock PkgConfig::GDLIB Threads::Threads
  ${CMAKE_DL_LIBS})
# The program's own name server, for libcurl.
target_link_options(jobq_handler_tests PRIVATE LINKER:--export-dynamic-symbol=getaddrinfo)
target_compile_definitions(jobq_handler_tests PRIVATE JOBQ_PLUGIN_DIR="${JOBQ_PLUGIN_OUTPUT}")
add_dependencies(jobq_handler_tests jobq_handler_trial jobq_handler_image)
gtest_discover_tests(jobq_handler_tests)

add_executable(run_handler ${CMAKE_CURRENT_LIST_DIR}/run_handler.cpp)
target_link_libraries(run_handler PRIVATE jobq::testkit ${CMAKE_DL_LIBS})
