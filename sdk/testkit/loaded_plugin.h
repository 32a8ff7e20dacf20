// Opens a plugin library in a test, without a search path and without a check of the fingerprint. The server uses
// core/plugin/plugin_host.h.
#pragma once

#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "jobq/abi.h"
#include "jobq/abi_entry.h"
#include "jobq/config.h"
#include "jobq/error.h"
#include "jobq/log.h"
#include "jobq/plugin.h"
#include "jobq/time.h"
#include "testkit/manual_clock.h"
#include "testkit/plain_receiver_names.h"

namespace jobq::testkit {

/// A PluginConfig with the values of a map. Values are as in the configuration file, except that sizes are plain bytes
/// and durations are plain milliseconds.
class MapConfig final : public PluginConfig {
 public:
  MapConfig() = default;
  explicit MapConfig(std::map<std::string, std::string, std::less<>> values) : values_(std::move(values)) {}

  std::string text(std::string_view key, std::string_view fallback, std::string_view) const override {
    const auto found = values_.find(key);
    return found == values_.end() ? std::string(fallback) : found->second;
  }
  std::int64_t integer(std::string_view key, std::int64_t fallback, std::int64_t min, std::int64_t max,
                       std::string_view) const override {
    const auto found = values_.find(key);
    const std::int64_t value = found == values_.end() ? fallback : std::stoll(found->second);
    if (value < min || value > max) throw ConfigError(std::string(key) + " is out of range");
    return value;
  }
  Millis duration(std::string_view key, Millis fallback, Millis min, Millis max, std::string_view help) const override {
    return Millis(integer(key, fallback.count(), min.count(), max.count(), help));
  }
  std::uint64_t size(std::string_view key, std::uint64_t fallback, std::uint64_t min, std::uint64_t max,
                     std::string_view help) const override {
    return static_cast<std::uint64_t>(integer(key, static_cast<std::int64_t>(fallback), static_cast<std::int64_t>(min),
                                              static_cast<std::int64_t>(max), help));
  }
  bool flag(std::string_view key, bool fallback, std::string_view) const override {
    const auto found = values_.find(key);
    return found == values_.end() ? fallback : found->second == "true";
  }

 private:
  std::map<std::string, std::string, std::less<>> values_;
};

/// A log that keeps no line.
class SilentLog final : public Log {
 public:
  void write(LogLevel, std::string_view, std::string_view) noexcept override {}
};

/// Creates the entry `name` of the library at `path` and returns the plugin. The library stays loaded. Without names of
/// receivers in `env` the plugin gets PlainReceiverNames. Throws std::runtime_error if the file is no plugin library or
/// lacks the entry.
template <class Interface>
std::unique_ptr<Interface> loadPlugin(const std::string& path, std::string_view name, const PluginEnv& env) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw std::runtime_error(dlerror());
  const auto describe = reinterpret_cast<const abi::Descriptor* (*)()>(dlsym(library, abi::kSymbol));
  if (describe == nullptr) throw std::runtime_error(path + " has no symbol " + abi::kSymbol);
  const abi::Descriptor* descriptor = describe();
  static const PlainReceiverNames kPlain{};
  PluginEnv complete = env;
  if (complete.receivers == nullptr) complete.receivers = &kPlain;
  for (std::size_t i = 0; i < descriptor->entryCount; ++i) {
    const abi::Entry& entry = descriptor->entries[i];
    if (entry.kind == Interface::kKind && name == entry.name) {
      return std::unique_ptr<Interface>(static_cast<Interface*>(entry.create(complete)));
    }
  }
  throw std::runtime_error(path + " has no entry " + std::string(name));
}

}  // namespace jobq::testkit
