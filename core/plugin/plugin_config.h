// A plugin's view of the configuration file: only the keys of the plugin. A plugin declares a key by reading the key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/config.h"
#include "jobq/time.h"

namespace jobq {

/// The type of a secret, and the value that is shown in place of a secret.
inline constexpr const char* kSecretType = "secret";
inline constexpr const char* kSetSecret = "set";

/// Returns a value of an option as administrators may see the value. Pure.
std::string shownValue(std::string_view type, const std::string& value);

/// One declared key, as `jobqctl plugin describe` prints the key.
struct PluginOption {
  std::string key;  ///< full name, such as storage.sqlite.readers
  std::string type;
  std::string value;  ///< value in force, from the file or by default; or kSetSecret
  std::string fallback;
  std::string range;
  std::string help;
};

/// Records each key that is read. Returns the values of `settings`, and the default for a key without a value.
/// `settings` outlives the object. One thread at a time.
class DeclaredConfig final : public PluginConfig {
 public:
  DeclaredConfig(std::string prefix, const std::map<std::string, std::string>& settings)
      : prefix_(std::move(prefix)), settings_(settings) {}

  std::string text(std::string_view key, std::string_view fallback, std::string_view help) const override;
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max,
                       std::string_view help) const override;
  Millis duration(std::string_view key, Millis fallback, Millis min, Millis max, std::string_view help) const override;
  std::uint64_t size(std::string_view key, std::uint64_t fallback, std::uint64_t min, std::uint64_t max,
                     std::string_view help) const override;
  bool flag(std::string_view key, bool fallback, std::string_view help) const override;

  /// Returns the declared keys in the order of declaration.
  const std::vector<PluginOption>& options() const { return options_; }

 private:
  std::string secret(std::string_view key, std::string_view help) const;
  const std::string* declare(std::string_view key, const char* type, std::string fallback, std::string range,
                             std::string_view help) const;

  const std::string prefix_;  // "<kind>.<name>."
  const std::map<std::string, std::string>& settings_;
  mutable std::vector<PluginOption> options_;
};

}  // namespace jobq
