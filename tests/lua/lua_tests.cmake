# The tests of plugins/lua, through the plugin as loaded by the server, and of the plugin's parts, linked into the test.
jobq_add_test(lua_test LABELS unit tsan
  SOURCES
    lua/filter_test.cpp
    lua/json_bridge_test.cpp
    lua/random_test.cpp
    lua/sandbox_attack_test.cpp
    lua/sandbox_test.cpp
    lua/script_folder_test.cpp
    lua/stock_lua_test.cpp
    lua/time_test.cpp
  LIBRARIES jobq_lua_objects
  NEEDS jobq_lua jobq_handler_echo)
if(JOBQ_SANITIZE MATCHES undefined)
  # RapidJSON, the judge of JSON texts, adds offsets to null pointers.
  target_compile_options(lua_test PRIVATE -fno-sanitize=pointer-overflow)
endif()
