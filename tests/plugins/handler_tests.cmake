# The tests of handler_trial and handler_image, and the tool that runs one job without a server.
jobq_add_test(jobq_handler_tests SMALL LABELS unit
  SOURCES
    plugins/handler_image_fetch_test.cpp
    plugins/handler_image_hostile_test.cpp
    plugins/handler_image_s3_test.cpp
    plugins/handler_image_test.cpp
    plugins/handler_trial_test.cpp
  LIBRARIES jobq_name_server jobq_handler_image_objects
  NEEDS jobq_handler_trial jobq_handler_image)
# The program's own name server, for libcurl.
target_link_options(jobq_handler_tests PRIVATE LINKER:--export-dynamic-symbol=getaddrinfo)

add_executable(run_handler plugins/run_handler.cpp)
target_link_libraries(run_handler PRIVATE jobq::testkit ${CMAKE_DL_LIBS})
