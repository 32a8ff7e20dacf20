// Base of all plugins. A plugin is an object made by a named entry of a shared library. The host owns the object
// through Plugin and deletes the object through Plugin. Libraries are never unloaded.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/config.h"
#include "jobq/error.h"
#include "jobq/log.h"
#include "jobq/receiver_names.h"
#include "jobq/time.h"

namespace jobq {

/// The kinds of plugins. Each interface names its kind in kKind.
enum class PluginKind { storage, queuePolicy, rateLimiter, admissionFilter, handler, webhookTransport, workerLauncher };

/// Returns the word for a kind in configuration keys (`storage.sqlite.readers`), in the manifest of a library and in
/// `jobqctl plugin`.
constexpr std::string_view nameOf(PluginKind kind) noexcept {
  switch (kind) {
    case PluginKind::storage: return "storage";
    case PluginKind::queuePolicy: return "queue";
    case PluginKind::rateLimiter: return "limiter";
    case PluginKind::admissionFilter: return "filter";
    case PluginKind::handler: return "handler";
    case PluginKind::webhookTransport: return "webhook";
    case PluginKind::workerLauncher: return "launcher";
  }
  return "";
}

/// State of a script that a plugin runs, as `GET /v1/plugins` and `jobqctl plugin` show the script.
struct ScriptReport {
  std::string name;
  std::optional<std::string> fault;  ///< why the newest text does not run, while an earlier text may; absent if it runs
};

/// Verdict of a check.
enum class CheckVerdict {
  passed,
  warned,  ///< the plugin works, and the administrator should know of something
  failed   ///< the plugin refuses to work
};

/// Result of one check of something that a plugin needs and does not own, such as a database server.
struct CheckResult {
  std::string name;  ///< one word, such as "version"
  CheckVerdict verdict = CheckVerdict::passed;
  std::string text;  ///< what was found; of a warning or a failure a sentence with the remedy. Further lines of the
                     ///< text, such as statements for a database, stand alone below the results
};

/// The base of every plugin interface.
class JOBQ_VISIBLE Plugin : public abi::Versioned {
 public:
  virtual ~Plugin() = default;
  Plugin() = default;
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  /// Returns the scripts of the plugin: files outside of its library, known by name and read anew after changes. Most
  /// plugins have no scripts and keep the default, an empty list. Any thread.
  virtual std::vector<ScriptReport> scripts() const { return {}; }
};

/// Arguments of a plugin's creation, lent by the host. Clock, log and names outlive the plugin object; the other
/// references are valid during creation only.
struct PluginEnv {
  const PluginConfig& config;          ///< settings of this entry; valid during creation only
  Clock& clock;                        ///< the server's clock
  Log& log;                            ///< the server's log; each line carries the name of the entry
  std::filesystem::path dataDir;       ///< data directory: exists, mode 0700, locked by this server
  bool allowPrivateAddresses;          ///< `net.allowPrivate`, an argument of isAllowed() in net_guard.h
  std::filesystem::path scriptsDir{};  ///< scripts of this kind: `<scripts.path>/handlers` or `/filters`
  const ReceiverNames* receivers{};    ///< gives Delivery::host in outbox_store.h; never null for a storage
};

}  // namespace jobq
