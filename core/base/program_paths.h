// Where the program finds the files that belong to it: beside itself in a build tree, or where `cmake --install` put
// them.
#pragma once

#include <filesystem>

namespace jobq {

/// Returns the folder of the plugins that were built or installed with this program. The folder need not exist. Throws
/// std::filesystem::filesystem_error when the system does not tell the program's own path. May be called from any
/// thread.
std::filesystem::path defaultPluginFolder();

/// Returns the folder with the Lua handlers and filters that were shipped with this program, under the same rules.
std::filesystem::path defaultScriptFolder();

}  // namespace jobq
