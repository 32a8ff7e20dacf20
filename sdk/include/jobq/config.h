// Settings of a plugin. A read of a key declares the key: the reads of a plugin are its table of options. The host
// prints the table (`jobqctl plugin describe`) and checks the configuration file against the table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "jobq/time.h"

namespace jobq {

/// Access of a plugin to its settings, valid during creation and declaration only, on one thread. Keys are relative to
/// `<kind>.<name>.`, or to `<name>.` if the library offers the name in several kinds. Keys match [A-Za-z0-9.]+, and a
/// plugin reads each key once.
///
/// Each function returns the value of `key`, or `fallback` if the configuration does not set the key. `help` describes
/// the setting in one clause. Each function throws ConfigError for a value that does not parse or is out of the range
/// from `min` to `max`; the message names the full key, the value and the range.
class PluginConfig {
 public:
  virtual ~PluginConfig() = default;

  /// Reads a text.
  virtual std::string text(std::string_view key, std::string_view fallback, std::string_view help) const = 0;
  /// Reads a whole number.
  virtual std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max,
                               std::string_view help) const = 0;
  /// Reads a duration. The file gives a number with a unit: 500ms 5s 10m 24h 7d.
  virtual Millis duration(std::string_view key, Millis fallback, Millis min, Millis max,
                          std::string_view help) const = 0;
  /// Reads a size in bytes. The file gives a number with a unit: 512B 64KB 10MB 1GB (1 MB = 1,048,576 bytes).
  virtual std::uint64_t size(std::string_view key, std::uint64_t fallback, std::uint64_t min, std::uint64_t max,
                             std::string_view help) const = 0;
  /// Reads `true` or `false`.
  virtual bool flag(std::string_view key, bool fallback, std::string_view help) const = 0;
};

}  // namespace jobq
