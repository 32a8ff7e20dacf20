// A plugin's own settings. Asking for a key declares it: the calls a plugin makes are its table of options, which the
// host prints (`jobqctl plugin describe`) and checks the configuration file against.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jobq/time.h"

namespace jobq {

/// Valid during creation and declaration only; one thread. Keys are relative to `<kind>.<name>.`, match
/// [A-Za-z0-9.]+, and each is asked for once. A value that does not parse or is out of range throws ConfigError, which
/// names the full key, the value and the range.
class PluginConfig {
 public:
  virtual ~PluginConfig() = default;

  virtual std::string text(std::string_view key, std::string_view fallback, std::string_view help) const = 0;
  virtual std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max,
                               std::string_view help) const = 0;
  /// In the file with a unit: 500ms 5s 10m 24h 7d.
  virtual Millis duration(std::string_view key, Millis fallback, Millis min, Millis max,
                          std::string_view help) const = 0;
  /// In bytes; in the file with a unit: 512B 64KB 10MB 1GB (1 MB = 1,048,576).
  virtual std::uint64_t size(std::string_view key, std::uint64_t fallback, std::uint64_t min, std::uint64_t max,
                             std::string_view help) const = 0;
  virtual bool flag(std::string_view key, bool fallback, std::string_view help) const = 0;
};

}  // namespace jobq
