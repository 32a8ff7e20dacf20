#include "core/process/program_paths.h"

#include <string_view>

namespace jobq {
namespace {

// The paths are relative to the folder of the programs; core/CMakeLists.txt sets them from the install rules.
constexpr std::string_view kInstalledPlugins = JOBQ_INSTALLED_PLUGINS;
constexpr std::string_view kInstalledScripts = JOBQ_INSTALLED_SCRIPTS;
constexpr std::string_view kInstalledGuard = JOBQ_INSTALLED_GUARD;

std::filesystem::path programFolder() { return std::filesystem::read_symlink("/proc/self/exe").parent_path(); }

}  // namespace

std::filesystem::path defaultPluginFolder() {
  const std::filesystem::path programs = programFolder();
  const std::filesystem::path built = programs / "../plugins";
  if (std::filesystem::exists(built)) return built;
  return programs / kInstalledPlugins;
}

std::filesystem::path guardProgram() {
  const std::filesystem::path programs = programFolder();
  const std::filesystem::path built = programs / "jobq-guard";
  return std::filesystem::exists(built) ? built : (programs / kInstalledGuard).lexically_normal();
}

std::filesystem::path defaultScriptFolder() {
  const std::filesystem::path programs = programFolder();
  std::filesystem::path installed = (programs / kInstalledScripts).lexically_normal();
  if (std::filesystem::exists(installed)) return installed;
  // A build folder lies inside the tree of the sources.
  std::filesystem::path base = programs.parent_path();
  while (!std::filesystem::exists(base / "scripts/lua") && base != base.root_path()) base = base.parent_path();
  return base / "scripts/lua";
}

}  // namespace jobq
