# Deliberately broken plugins: each plugin shows that a proof can fail. A mutant is the plugin with one source replaced.
#   jobq_break(<name> <plugin> <source> [libraries]): build/tests/broken/<name>/libjobq_<plugin>.so, of
#   fault/mutants/<name>.cpp in the place of plugins/<plugin>/<source>, and of all other objects of the plugin. In a unity
#   build the source is an object of its own (SKIP_UNITY_BUILD_INCLUSION in the plugin's CMakeLists.txt).
function(jobq_break name plugin source)
  string(REPLACE "." "[.]" object ${source})
  jobq_add_plugin(broken_${name} SOURCES ${PROJECT_SOURCE_DIR}/tests/fault/mutants/${name}.cpp LIBRARIES ${ARGN})
  target_include_directories(jobq_broken_${name}_objects PRIVATE ${PROJECT_SOURCE_DIR}/plugins/${plugin})
  target_sources(jobq_broken_${name} PRIVATE
    $<FILTER:$<TARGET_OBJECTS:jobq_${plugin}_objects>,EXCLUDE,/${object}[.]o$>)
  set_target_properties(jobq_broken_${name} PROPERTIES OUTPUT_NAME jobq_${plugin}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests/broken/${name})
endfunction()
set(sqlite jobq_storage_sql Poco::Data Poco::DataSQLite SQLite::SQLite3)
jobq_break(no_fsync storage_sqlite durability.cpp ${sqlite})
jobq_break(late_fsync storage_sqlite durability.cpp ${sqlite})
jobq_break(no_body_sync storage_sqlite durability.cpp ${sqlite})
jobq_break(forget_claims storage_sqlite former_claims.cpp ${sqlite})
jobq_break(no_fencing storage_memory memory_fencing.cpp)
jobq_break(no_delivery_fencing storage_memory memory_fencing.cpp)
