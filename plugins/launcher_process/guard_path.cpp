#include "guard_path.h"

#include <dlfcn.h>
#include <unistd.h>

#include <string_view>

#include "jobq/error.h"

namespace jobq::process {

namespace {

// Paths relative to the folder of the plugin; CMakeLists.txt sets both.
constexpr std::string_view kBuilt = JOBQ_BUILT_GUARD;
constexpr std::string_view kInstalled = JOBQ_INSTALLED_GUARD;

std::filesystem::path pluginFolder() {
  static const char kOwn = 0;
  Dl_info library{};
  if (::dladdr(&kOwn, &library) == 0 || library.dli_fname == nullptr) return std::filesystem::current_path();
  return std::filesystem::canonical(library.dli_fname).parent_path();
}

}  // namespace

std::filesystem::path guardPath() {
  const std::filesystem::path folder = pluginFolder();
  const std::filesystem::path installed = (folder / kInstalled).lexically_normal();
  for (const std::filesystem::path& path : {installed, (folder / kBuilt).lexically_normal()}) {
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  throw ConfigError("launcher = process needs the program " + installed.string() +
                    ", which is missing or may not be executed: install jobq anew, or choose another launcher");
}

}  // namespace jobq::process
