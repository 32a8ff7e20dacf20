// What a plugin file says about itself before any of its code runs. Static constructors run at dlopen, and a truncated
// file kills the host there, so everything that can be refused is refused from the bytes on disk.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace jobq {

/// The text of section `jobq_abi`: `minor`, the fingerprint's fields, the `layout.` fields, and the entries.
struct PluginManifest {
  std::map<std::string, std::string> fields;
  std::vector<std::string> entries;  ///< "<kind> <name> <version>"
};

/// Reads the manifest. Throws Error, whose message says what is wrong with the file and what to do: not an ELF file,
/// truncated, for another machine, no jobq symbol, another ABI major, no manifest.
PluginManifest readPluginFile(const std::filesystem::path& file);

/// Compares with this server's own by the version rule of jobq/abi.h. Throws Error naming the field, both values and
/// the remedy.
void checkManifest(const PluginManifest& manifest);

/// Splits `key=value` lines.
PluginManifest parseManifest(std::string_view text);

}  // namespace jobq
