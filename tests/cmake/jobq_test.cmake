# Declares the tests of jobq. Each test has a label of its level:
#   unit       parts of the program, without a server or a storage of the disk
#   contract   a plugin against the contract of its kind
#   server     the whole server in the test's own process, on a clock moved by the test
#   poco       the same over Poco's HTTP server, as far as not part of `http`
#   http       a server in a process of its own, called from outside
#   fault      failing disks, storages, power and processes; loads
#   property   random sequences against a model
#   client     programs and projects of users: demo, sdk template, S3, foreign clients
#   fuzz, bench, arch
# Further labels choose tests for a tier: `asan` and `tsan` (runs under that sanitizer, too; each GoogleTest program has
# `asan`), `analysis` (clang and the format), `pace` (figures of a machine without other work), `nightly` (too long for
# CI), `whole` (all tests of a program in one process), `single` (a test of such a program by itself).
include(GoogleTest)

# Time limits end a hang and judge no pace. Sanitizers are slower, and the proofs of the nightly tier are longer.
set(JOBQ_TEST_TIME 1 CACHE STRING "Multiplies the time limit of each test")
if(JOBQ_SANITIZE)
  set(jobq_test_time 4)
else()
  set(jobq_test_time ${JOBQ_TEST_TIME})
endif()
math(EXPR jobq_longest_proof "900 * ${jobq_test_time}")

# jobq_add_test(<name> [OPTIMISED] [SMALL [PARTS n]] LABELS label... SOURCES a.cpp... [LIBRARIES lib...] [NEEDS target...]
#               [PROCESSORS n] [TIMEOUT seconds] [PROPERTIES property value...])
#
# Builds the GoogleTest program build/tests/<name> and makes a test of CTest of each of its tests, named <name>.<test>.
# OPTIMISED is for programs with hard work of their own: the optimiser needs five times as long as the compiler for the
# templates of GoogleTest. SMALL is for programs with hundreds of small tests: the start of a process costs more than such
# a test, so the tiers play the program as one test of CTest, <name>, and the preset `quick` plays single tests. PARTS makes
# n tests of such a program, <name>.part_<i>: a program that takes a minute would end after all others. NEEDS are targets
# opened by the running program. TIMEOUT bounds one test of CTest, to end a hang. PROCESSORS are places, of which the
# presets have 12 for two processors: 1 for a test that mostly waits, 2 without this argument, 4 for a test that takes a
# processor or more.
function(jobq_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "OPTIMISED;SMALL" "PARTS;PROCESSORS;TIMEOUT" "LABELS;SOURCES;LIBRARIES;NEEDS;PROPERTIES")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 2)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${jobq_test_time}")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE jobq::testkit jobq_gtest Threads::Threads ${CMAKE_DL_LIBS} ${arg_LIBRARIES})
  target_compile_definitions(${name} PRIVATE
    JOBQ_PLUGIN_DIR="${JOBQ_PLUGIN_OUTPUT}" JOBQ_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(arg_NEEDS)
    add_dependencies(${name} ${arg_NEEDS})
  endif()
  if(NOT arg_OPTIMISED)
    # GoogleTest's headers and the headers of every test, compiled once. A source still includes all headers in use,
    # because the build without unity has no precompiled headers.
    if(CMAKE_UNITY_BUILD)
      target_precompile_headers(${name} REUSE_FROM jobq_test_headers)
    endif()
  else()
    target_compile_options(${name} PRIVATE ${jobq_working_hard})
  endif()
  foreach(sanitizer asan tsan)
    if(${sanitizer} IN_LIST arg_LABELS OR sanitizer STREQUAL asan)
      set_property(GLOBAL APPEND PROPERTY jobq_programs_of_${sanitizer} ${name})
    endif()
  endforeach()
  if(arg_SMALL)
    if(NOT arg_PARTS)
      set(arg_PARTS 1)
    endif()
    foreach(part RANGE 1 ${arg_PARTS})
      set(whole ${name})
      if(arg_PARTS GREATER 1)
        set(whole ${name}.part_${part})
      endif()
      math(EXPR index "${part} - 1")
      add_test(NAME ${whole} COMMAND ${name} --gtest_output=xml:${CMAKE_BINARY_DIR}/test-results/${whole}.xml)
      set_tests_properties(${whole} PROPERTIES LABELS whole TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS} COST 100
        ENVIRONMENT "GTEST_TOTAL_SHARDS=${arg_PARTS};GTEST_SHARD_INDEX=${index}" ${arg_PROPERTIES})
      if(JOBQ_SANITIZE)
        set_tests_properties(${whole} PROPERTIES LABELS "${arg_LABELS};asan")
      endif()
    endforeach()
    if(JOBQ_SANITIZE)
      return()
    endif()
    list(APPEND arg_LABELS single)
  endif()
  gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60 NO_PRETTY_VALUES TEST_PREFIX ${name}.
    TEST_LIST ${name}_tests
    PROPERTIES TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS} SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]"
      ${arg_PROPERTIES})
  # gtest_discover_tests() would take the second label of a list for the name of a property.
  set(labels ${CMAKE_CURRENT_BINARY_DIR}/${name}_labels.cmake)
  file(CONFIGURE OUTPUT ${labels} @ONLY CONTENT [[
if(@name@_tests)
  set_tests_properties(${@name@_tests} PROPERTIES LABELS "@arg_LABELS@;asan")
endif()
]])
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${labels})
endfunction()

# jobq_add_test_objects(<name> a.cpp...)
#
# Compiles sources of several test programs once, without the precompiled header, which is for code of programs (-fpie).
# A program names <name> among its LIBRARIES.
function(jobq_add_test_objects name)
  add_library(${name} OBJECT ${ARGN})
  target_link_libraries(${name} PUBLIC jobq::testkit jobq_gtest Threads::Threads)
endfunction()

# jobq_add_python_test(<name> <file> LABELS label... [PROCESSORS n] [TIMEOUT seconds] [PROPERTIES property value...])
#
# Makes one test of CTest of a pytest file, named <name>. The file calls the server of this build folder; the output of
# each of its tests is in <build>/test-results/<name>.xml. PROCESSORS are places, as for jobq_add_test().
set(JOBQ_PYTHON ${PROJECT_SOURCE_DIR}/build/venv/bin/python CACHE FILEPATH "Python with pytest, as scripts/setup.sh makes it")
function(jobq_add_python_test name file)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "PROCESSORS;TIMEOUT" "LABELS;PROPERTIES;ENVIRONMENT")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  if(NOT arg_PROCESSORS)
    set(arg_PROCESSORS 2)
  endif()
  math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * ${jobq_test_time}")
  add_test(NAME ${name}
    COMMAND ${JOBQ_PYTHON} -m pytest -p no:cacheprovider ${PROJECT_SOURCE_DIR}/tests/${file} --junitxml ${CMAKE_BINARY_DIR}/test-results/${name}.xml)
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT} PROCESSORS ${arg_PROCESSORS}
    ENVIRONMENT "JOBQ_BUILD=${CMAKE_BINARY_DIR};${arg_ENVIRONMENT}" ${arg_PROPERTIES})
endfunction()
