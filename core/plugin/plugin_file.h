// The content of a plugin file before any of its code runs. Static constructors run at dlopen, and a truncated file
// kills the host there, so all checks possible on the bytes on disk happen first.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace jobq {

/// The text of section `jobq_abi`: `minor`, the fields of the fingerprint, the `layout.` fields, and the entries.
struct PluginManifest {
  std::map<std::string, std::string> fields;
  std::vector<std::string> entries;  ///< "<kind> <name> <version>"
};

/// Reads the manifest. Throws Error with the fault of the file and the remedy. Faults: no ELF file, a truncated file, a
/// file for another machine, no jobq symbol, another ABI major, no manifest.
PluginManifest readPluginFile(const std::filesystem::path& file);

/// Compares the manifest with the manifest of this server by the version rule of sdk/include/jobq/abi.h. Throws Error
/// with the field, both values and the remedy.
void checkManifest(const PluginManifest& manifest);

/// Splits `key=value` lines.
PluginManifest parseManifest(std::string_view text);

}  // namespace jobq
