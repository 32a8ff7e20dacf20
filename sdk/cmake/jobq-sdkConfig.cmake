# find_package(jobq-sdk): jobq::sdk, jobq::testkit, and jobq_add_plugin() of jobq_plugin.cmake. JOBQ_SERVER_PLUGINS is the
# folder of the plugins that were installed with it.
include(${CMAKE_CURRENT_LIST_DIR}/jobq-sdkTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/jobq_plugin.cmake)
get_filename_component(JOBQ_SERVER_PLUGINS ${CMAKE_CURRENT_LIST_DIR}/../../jobq/plugins ABSOLUTE)
