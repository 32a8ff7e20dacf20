// The images that run inside the server.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/plugin/plugin_host.h"

namespace jobq {

/// Returns `plugin/<handler>` for each handler of the installed plugins, and `lua/<name>` for each script in
/// `handlerScripts`. A folder that cannot be read counts as empty. The handler that runs the scripts is not in the
/// list.
std::vector<std::string> localImages(const PluginHost& host, const std::filesystem::path& handlerScripts);

}  // namespace jobq
