# Plugins that are broken on purpose, by a flag that exists for that alone: each shows that a proof can fail.
#   jobq_break(<name> <plugin> <source> <flag>): build/tests/broken/<name>/libjobq_<plugin>.so
function(jobq_break name plugin source flag)
  string(REPLACE "." "[.]" object ${source})
  jobq_add_plugin(broken_${name} SOURCES
    ${PROJECT_SOURCE_DIR}/plugins/${plugin}/${source}
    $<FILTER:$<TARGET_OBJECTS:jobq_${plugin}>,EXCLUDE,/${object}[.]o$>
    LIBRARIES ${ARGN})
  target_compile_definitions(jobq_broken_${name} PRIVATE ${flag})
  set_target_properties(jobq_broken_${name} PROPERTIES OUTPUT_NAME jobq_${plugin}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/broken/${name})
endfunction()
set(sqlite Poco::Data Poco::DataSQLite SQLite::SQLite3)
jobq_break(no_fsync storage_sqlite schema.cpp JOBQ_TEST_NO_FSYNC ${sqlite})
jobq_break(forget_claims storage_sqlite leases.cpp JOBQ_TEST_FORGET_CLAIMS ${sqlite})
jobq_break(no_fencing storage_memory memory_state.cpp JOBQ_TEST_NO_FENCING)
