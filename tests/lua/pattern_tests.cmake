# The tests of plugins/lua's pattern functions, with the stock functions as the judge.
jobq_add_test(pattern_test OPTIMISED LABELS unit
  SOURCES lua/pattern_attack_test.cpp lua/pattern_property_test.cpp lua/pattern_reader_test.cpp lua/pattern_test.cpp
    lua/twin_states.cpp
  LIBRARIES jobq_lua_objects)
target_include_directories(pattern_test PRIVATE ${PROJECT_SOURCE_DIR})
