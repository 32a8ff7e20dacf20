# The pattern functions of plugins/lua, with the stock ones as their judge.
pkg_check_modules(LUA REQUIRED IMPORTED_TARGET lua5.4-c++)
set(lua_source ${PROJECT_SOURCE_DIR}/plugins/lua)
jobq_add_test(pattern_test
  SOURCES lua/pattern_test.cpp lua/pattern_property_test.cpp lua/pattern_attack_test.cpp lua/twin_states.cpp
          ${lua_source}/pattern_match.cpp ${lua_source}/pattern_match_single.cpp ${lua_source}/pattern_call.cpp
          ${lua_source}/pattern_functions.cpp ${lua_source}/pattern_gsub.cpp ${lua_source}/step_meter.cpp ${lua_source}/watch.cpp
  LIBRARIES PkgConfig::LUA)
target_include_directories(pattern_test PRIVATE ${PROJECT_SOURCE_DIR})
