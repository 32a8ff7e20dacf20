# The tests of plugins/lua: through the plugin as the server loads it, and of its parts, which are linked in here once
# more. Include it after the plugins.
find_package(PkgConfig REQUIRED)
pkg_check_modules(LUA_CXX REQUIRED IMPORTED_TARGET lua5.4-c++)

set(lua_plugin ${PROJECT_SOURCE_DIR}/plugins/lua)
add_library(lua_parts STATIC
  ${lua_plugin}/base_functions.cpp
  ${lua_plugin}/coroutine_functions.cpp
  ${lua_plugin}/hash_parts.cpp
  ${lua_plugin}/heap.cpp
  ${lua_plugin}/json_bridge.cpp
  ${lua_plugin}/json_reader.cpp
  ${lua_plugin}/library.cpp
  ${lua_plugin}/pattern_call.cpp
  ${lua_plugin}/pattern_functions.cpp
  ${lua_plugin}/pattern_gsub.cpp
  ${lua_plugin}/pattern_match.cpp
  ${lua_plugin}/pattern_match_single.cpp
  ${lua_plugin}/quotas.cpp
  ${lua_plugin}/sandbox.cpp
  ${lua_plugin}/script.cpp
  ${lua_plugin}/script_file.cpp
  ${lua_plugin}/step_meter.cpp
  ${lua_plugin}/string_functions.cpp
  ${lua_plugin}/table_functions.cpp
  ${lua_plugin}/watch.cpp)
target_include_directories(lua_parts PUBLIC ${lua_plugin})
target_link_libraries(lua_parts PUBLIC jobq::sdk PkgConfig::LUA_CXX)

jobq_add_test(lua_test
  SOURCES lua/filter_test.cpp lua/json_bridge_test.cpp lua/random_test.cpp lua/sandbox_attack_test.cpp
          lua/sandbox_test.cpp lua/script_folder_test.cpp lua/stock_lua_test.cpp
  LIBRARIES lua_parts
  NEEDS jobq_lua jobq_handler_echo)
