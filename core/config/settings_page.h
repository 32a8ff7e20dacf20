// The settings as operators read them in etc/README.md.
#pragma once

#include <string>

namespace jobq {

/// Returns the settings of the server and of endpoints of the file in Markdown, a table for each subject. Pure; any
/// thread.
std::string settingsPage();

/// Returns the table of the operations with rate limits and their default limits in Markdown. Pure; any thread.
std::string operationsTable();

}  // namespace jobq
