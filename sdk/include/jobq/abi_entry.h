// Records of a plugin library for the host: the entries of the library, and the descriptor that lists the entries
// (abi.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "jobq/config.h"
#include "jobq/plugin.h"

namespace jobq::abi {

/// A plugin offered by a library. Strings are literals of the library.
struct Entry {
  PluginKind kind;
  const char* name;                      ///< name in the configuration: [a-z0-9_-]{1,64}
  const char* version;                   ///< version of the plugin itself
  void (*declare)(const PluginConfig&);  ///< reads each setting once and creates no plugin
  Plugin* (*create)(const PluginEnv&);   ///< creates the plugin, an implementation of the interface of `kind`; the
                                         ///< caller owns the result
  /// Checks what the plugin needs, with the settings of `env`, creates no plugin and leaves nothing behind. Throws
  /// ConfigError for a bad setting; every other fault is a result. Null for a plugin that checks nothing.
  std::vector<CheckResult> (*probe)(const PluginEnv& env);
};

/// Result of `jobq_plugin_v5()`: constant, owned by the library. New fields go last; the host reads a field of a later
/// minor only if `size` covers the field.
struct Descriptor {
  std::uint32_t size;   ///< sizeof(Descriptor) in the sdk of the plugin
  std::uint32_t minor;  ///< kMinor in the sdk of the plugin
  const char* fingerprint;
  const Entry* entries;
  std::size_t entryCount;
};

/// Smallest size of a descriptor of this major, in bytes.
inline constexpr std::size_t kSmallestDescriptor = offsetof(Descriptor, entryCount) + sizeof(std::size_t);
static_assert(std::has_unique_object_representations_v<Descriptor>, "padding would hide whether `size` covers a field");

}  // namespace jobq::abi
