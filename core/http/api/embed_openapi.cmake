# Writes openapi.json into a C++ source: cmake -D FROM=openapi.json -D TO=openapi_text.cpp -D VERSION=0.2.0-dev -P …
# Compilers limit the length of one literal, so the text is cut into pieces. The text has to be ASCII: a piece must not
# end inside a character.
file(READ "${FROM}" text)
string(REPLACE "@JOBQ_VERSION@" "${VERSION}" text "${text}")
string(LENGTH "${text}" size)
file(SIZE "${FROM}" bytes)
if(text MATCHES "[^\n -~]" OR text MATCHES "\\)openapi\"")
  message(FATAL_ERROR "${FROM} has to be plain ASCII text, without )openapi\": write \\u escapes")
endif()

set(out "// Made of core/http/api/openapi.json by embed_openapi.cmake.\n#include \"core/http/api/openapi.h\"\n\n")
string(APPEND out "namespace jobq {\n\nconst std::string& openapiSource() {\n")
string(APPEND out "  static const std::string kText = [] {\n    std::string text;\n")
string(APPEND out "    text.reserve(${bytes});\n")
set(piece 8000)
set(from 0)
while(from LESS size)
  string(SUBSTRING "${text}" ${from} ${piece} part)
  string(APPEND out "    text += R\"openapi(${part})openapi\";\n")
  math(EXPR from "${from} + ${piece}")
endwhile()
string(APPEND out "    return text;\n  }();\n  return kText;\n}\n\n}  // namespace jobq\n")
file(WRITE "${TO}" "${out}")
