// Finds, checks and loads plugin libraries, and makes their entries. A library is never unloaded. An unfit library is
// listed with the reason, and the server starts without the library unless the configuration requires the library.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/result.h"
#include "core/plugin/plugin_config.h"
#include "jobq/log.h"
#include "jobq/plugin.h"
#include "jobq/receiver_names.h"
#include "jobq/time.h"

namespace jobq {

namespace abi {
struct Entry;
}

/// Constant after load(); any thread may call afterwards. `settings` and `log` outlive the host.
class PluginHost {
 public:
  /// One plugin of a loaded library.
  struct Entry {
    PluginKind kind;
    std::string name;
    std::string version;
    std::string prefix;  ///< prefix of the settings' keys
    std::vector<PluginOption> options;
    const abi::Entry* code = nullptr;
  };
  /// One library file, loaded or rejected.
  struct Library {
    std::filesystem::path file;
    Result<void> loaded;  ///< fails with the reason of the rejection
    std::vector<Entry> entries;
  };

  /// Objects and settings that every plugin of a server receives. `clock` and `receivers` outlive all plugins.
  struct Deps {
    Clock& clock;
    std::filesystem::path dataDir;
    std::filesystem::path handlerScripts;
    std::filesystem::path filterScripts;
    bool allowPrivateAddresses = false;
    const ReceiverNames* receivers = nullptr;  ///< set if a storage is created
  };

  PluginHost(const std::map<std::string, std::string>& settings, Log& log) : settings_(settings), log_(log) {}

  /// Loads every `libjobq_*.so` of the folders, in order of folder and name. If two entries have the same kind and
  /// name, the first counts and the library of the second is rejected. Never throws for a bad file.
  void load(const std::vector<std::filesystem::path>& folders);

  /// Throws ConfigError, with a line and the nearest key for each plugin setting that belongs to no installed plugin.
  void checkSettings() const;

  /// Throws ConfigError with a line for each setting of the entry with a value that the entry refuses. The entry has to
  /// exist. Makes no plugin.
  void checkValues(PluginKind kind, std::string_view name) const;

  /// Checks what the entry needs outside of this server. Makes no plugin. Returns an empty optional for an entry that
  /// checks nothing. Throws ConfigError as create() does.
  std::optional<std::vector<CheckResult>> probe(PluginKind kind, std::string_view name, const Deps& around,
                                                Log& log) const;

  /// Makes a plugin of the entry, owned by the caller. Throws ConfigError if the entry does not exist, with the
  /// existing names and the reason why a library of that name was rejected.
  template <class Interface>
  std::unique_ptr<Interface> create(std::string_view name, const Deps& around, Log& log) const {
    return std::unique_ptr<Interface>(
        static_cast<Interface*>(createAny(Interface::kKind, name, around, log).release()));
  }

  /// Returns a sentence about an entry that does not exist: the existing names, and the reason why a library of that
  /// name was rejected.
  std::string absence(PluginKind kind, std::string_view name) const;

  bool has(PluginKind kind, std::string_view name) const { return find(kind, name) != nullptr; }
  const std::vector<Library>& libraries() const { return libraries_; }

 private:
  void loadFile(Library& library);
  const Entry* find(PluginKind kind, std::string_view name) const;
  const Entry& existing(PluginKind kind, std::string_view name) const;
  std::unique_ptr<Plugin> createAny(PluginKind kind, std::string_view name, const Deps& around, Log& log) const;

  const std::map<std::string, std::string>& settings_;
  Log& log_;
  std::vector<Library> libraries_;
};

}  // namespace jobq
