# The pattern functions of plugins/lua, with the stock ones as their judge.
jobq_add_test(pattern_test LABELS unit
  SOURCES lua/pattern_attack_test.cpp lua/pattern_property_test.cpp lua/pattern_test.cpp lua/twin_states.cpp
  LIBRARIES jobq_lua_objects)
target_include_directories(pattern_test PRIVATE ${PROJECT_SOURCE_DIR})
