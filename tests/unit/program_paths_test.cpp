// Tests of the files found beside a program of the build tree (core/process/program_paths.h). The folders of an
// installation are called in tests/clients/test_install.py.
#include "core/process/program_paths.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace jobq {
namespace {

namespace fs = std::filesystem;

TEST(ProgramPathsTest, ThePluginsAreInTheBuildFolder) {
  const fs::path folder = defaultPluginFolder();
  EXPECT_TRUE(folder.is_absolute()) << folder;
  EXPECT_EQ(fs::canonical(folder), fs::canonical(JOBQ_PLUGIN_DIR));
  EXPECT_TRUE(fs::exists(folder / "libjobq_storage_memory.so"));
}

TEST(ProgramPathsTest, TheScriptsAreInTheSourceFolder) {
  const fs::path folder = defaultScriptFolder();
  EXPECT_TRUE(folder.is_absolute()) << folder;
  EXPECT_EQ(fs::canonical(folder), fs::canonical(JOBQ_SOURCE_DIR "/scripts/lua"));
  EXPECT_TRUE(fs::is_directory(folder / "handlers"));
  EXPECT_TRUE(fs::is_directory(folder / "filters"));
}

TEST(ProgramPathsTest, TheGuardIsBesideTheInstalledPrograms) {
  const fs::path guard = guardProgram();
  EXPECT_TRUE(guard.is_absolute()) << guard;
  EXPECT_EQ(guard.filename(), "jobq-guard");
}

TEST(ProgramPathsTest, TheFoldersDependOnTheProgramAlone) {
  const fs::path before = fs::current_path();
  const fs::path plugins = defaultPluginFolder();
  const fs::path scripts = defaultScriptFolder();
  fs::current_path("/");
  const fs::path pluginsElsewhere = defaultPluginFolder();
  const fs::path scriptsElsewhere = defaultScriptFolder();
  fs::current_path(before);
  EXPECT_EQ(pluginsElsewhere, plugins);
  EXPECT_EQ(scriptsElsewhere, scripts);
}

}  // namespace
}  // namespace jobq
