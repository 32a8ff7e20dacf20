// Paths of the files that belong to the program: beside the program in a build tree, or in the folders of the
// installation.
#pragma once

#include <filesystem>

namespace jobq {

/// Returns the folder of the plugins built or installed with this program. The folder need not exist. Throws
/// std::filesystem::filesystem_error if the system does not tell the program's own path. Any thread may call.
std::filesystem::path defaultPluginFolder();

/// Returns the folder with the Lua handlers and filters shipped with this program, under the same rules.
std::filesystem::path defaultScriptFolder();

/// Returns the path of jobq-guard, which need not exist, under the same rules.
std::filesystem::path guardProgram();

}  // namespace jobq
