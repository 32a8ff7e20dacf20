# The tests of http.get and http.post, without a server.
jobq_add_test(lua_http_test SMALL LABELS unit
  SOURCES lua/http_test.cpp lua/http_redirect_test.cpp lua/http_hostile_test.cpp
  LIBRARIES jobq_name_server OpenSSL::SSL OpenSSL::Crypto
  NEEDS jobq_lua)
target_include_directories(lua_http_test PRIVATE ${CMAKE_CURRENT_LIST_DIR}/../plugins)
# Lets libcurl resolve names through the test program's own name server.
target_link_options(lua_http_test PRIVATE LINKER:--export-dynamic-symbol=getaddrinfo)
