# find_package(jobq-sdk) provides jobq::sdk, jobq::testkit, and jobq_add_plugin() of jobq_plugin.cmake. The variable
# JOBQ_SERVER_PLUGINS names the folder of the plugins installed together with the sdk.
include(${CMAKE_CURRENT_LIST_DIR}/jobq-sdkTargets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/jobq_plugin.cmake)
get_filename_component(JOBQ_SERVER_PLUGINS ${CMAKE_CURRENT_LIST_DIR}/../../jobq/plugins ABSOLUTE)
