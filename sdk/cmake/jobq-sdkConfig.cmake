# find_package(jobq-sdk): jobq::sdk, jobq::testkit, and jobq_add_plugin() of jobq_plugin.cmake.
include(${CMAKE_CURRENT_LIST_DIR}/jobq-sdkTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/jobq_plugin.cmake)
