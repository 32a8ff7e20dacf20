// The records that a plugin library shows to the host: its entries, and the descriptor that lists them (abi.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "jobq/config.h"
#include "jobq/plugin.h"

namespace jobq::abi {

/// One thing a library offers. Strings are literals of the library.
struct Entry {
  PluginKind kind;
  const char* name;                      ///< what the configuration calls it: [a-z0-9_-]{1,64}
  const char* version;                   ///< the plugin's own
  void (*declare)(const PluginConfig&);  ///< asks for every key it has, and makes nothing
  Plugin* (*create)(const PluginEnv&);   ///< the caller owns the result, which is an Interface of `kind`
};

/// The result of `jobq_plugin_v3()`: constant, owned by the library. New fields go last; the host reads a field of a
/// later minor only when `size` covers it.
struct Descriptor {
  std::uint32_t size;   ///< sizeof(Descriptor) as the plugin knew it
  std::uint32_t minor;  ///< kMinor as the plugin knew it
  const char* fingerprint;
  const Entry* entries;
  std::size_t entryCount;
};

/// The size that every descriptor of this major has at least.
inline constexpr std::size_t kSmallestDescriptor = offsetof(Descriptor, entryCount) + sizeof(std::size_t);
static_assert(std::has_unique_object_representations_v<Descriptor>, "padding would hide whether `size` covers a field");

}  // namespace jobq::abi
