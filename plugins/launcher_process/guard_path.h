// The place of the program jobq-guard.
#pragma once

#include <filesystem>

namespace jobq::process {

/// Returns the path of jobq-guard, a file beside the plugin. Throws ConfigError if the program is missing or may not be
/// executed.
std::filesystem::path guardPath();

}  // namespace jobq::process
