# Writes a text into a C++ source, as a function that returns the text:
#   cmake -D FROM=openapi.json -D TO=openapi_text.cpp -D HEADER=core/http/api/openapi.h -D FUNCTION=openapiSource
#         -D VERSION=0.2.0-dev -P embed_text.cmake
# In the text, @JOBQ_VERSION@ stands for the version, and @page.js@ for the file page.js in the folder of FROM, in the
# same way for each file with the ending .js or .css.
# Compilers limit the length of one literal, so the text is cut into pieces. The text has to be ASCII: a piece must not
# end inside a character.
file(READ "${FROM}" text)
cmake_path(GET FROM PARENT_PATH folder)
cmake_path(GET FROM FILENAME source)
string(REGEX MATCHALL "@[a-z_]+\\.(js|css)@\n" marks "${text}")
foreach(mark IN LISTS marks)
  string(REGEX REPLACE "[@\n]" "" name "${mark}")
  file(READ "${folder}/${name}" part)
  string(REPLACE "${mark}" "${part}" text "${text}")
endforeach()
string(REPLACE "@JOBQ_VERSION@" "${VERSION}" text "${text}")
string(LENGTH "${text}" size)
if(text MATCHES "[^\n -~]" OR text MATCHES "\\)jobq\"")
  message(FATAL_ERROR "${FROM} and its parts have to be plain ASCII text, without )jobq\": write \\u escapes")
endif()

set(out "// Made of ${source} by embed_text.cmake.\n#include \"${HEADER}\"\n\n")
string(APPEND out "namespace jobq {\n\nconst std::string& ${FUNCTION}() {\n")
string(APPEND out "  static const std::string kText = [] {\n    std::string text;\n")
string(APPEND out "    text.reserve(${size});\n")
set(piece 8000)
set(from 0)
while(from LESS size)
  string(SUBSTRING "${text}" ${from} ${piece} part)
  string(APPEND out "    text += R\"jobq(${part})jobq\";\n")
  math(EXPR from "${from} + ${piece}")
endwhile()
string(APPEND out "    return text;\n  }();\n  return kText;\n}\n\n}  // namespace jobq\n")
file(WRITE "${TO}" "${out}")
