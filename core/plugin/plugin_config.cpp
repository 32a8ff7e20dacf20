#include "core/plugin/plugin_config.h"

#include "core/config/units.h"
#include "jobq/secret_option.h"

namespace jobq {

// The table of options has no secret, because administrators read the table.
std::string shownValue(std::string_view type, const std::string& value) {
  return type == kSecretType && !value.empty() ? kSetSecret : value;
}

const std::string* DeclaredConfig::declare(std::string_view key, const char* type, std::string fallback,
                                           std::string range, std::string_view help) const {
  const std::string full = prefix_ + std::string(key);
  const auto found = settings_.find(full);
  const std::string value = found == settings_.end() ? fallback : found->second;
  options_.push_back({full, type, shownValue(type, value), std::move(fallback), std::move(range), std::string(help)});
  return found == settings_.end() ? nullptr : &found->second;
}

std::string DeclaredConfig::secret(std::string_view key, std::string_view help) const {
  const std::string* value = declare(key, kSecretType, "", "", help);
  return value == nullptr ? std::string() : *value;
}

std::string DeclaredConfig::text(std::string_view key, std::string_view fallback, std::string_view help) const {
  if (help.starts_with(kSecretMark)) return secret(key, help.substr(kSecretMark.size()));
  const std::string* value = declare(key, "text", std::string(fallback), "", help);
  return value == nullptr ? std::string(fallback) : *value;
}

std::int64_t DeclaredConfig::integer(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max,
                                     std::string_view help) const {
  const std::string* value =
      declare(key, "integer", std::to_string(fallback), std::to_string(min) + " to " + std::to_string(max), help);
  return value == nullptr ? fallback : units::integer(prefix_ + std::string(key), *value, min, max);
}

Millis DeclaredConfig::duration(std::string_view key, Millis fallback, Millis min, Millis max,
                                std::string_view help) const {
  const std::string* value =
      declare(key, "duration", units::print(fallback), units::print(min) + " to " + units::print(max), help);
  return value == nullptr ? fallback : units::duration(prefix_ + std::string(key), *value, min, max);
}

std::uint64_t DeclaredConfig::size(std::string_view key, std::uint64_t fallback, std::uint64_t min, std::uint64_t max,
                                   std::string_view help) const {
  const std::string* value =
      declare(key, "size", units::printSize(fallback), units::printSize(min) + " to " + units::printSize(max), help);
  return value == nullptr ? fallback : units::size(prefix_ + std::string(key), *value, min, max);
}

bool DeclaredConfig::flag(std::string_view key, bool fallback, std::string_view help) const {
  const std::string* value = declare(key, "flag", fallback ? "true" : "false", "true or false", help);
  return value == nullptr ? fallback : units::flag(prefix_ + std::string(key), *value);
}

}  // namespace jobq
