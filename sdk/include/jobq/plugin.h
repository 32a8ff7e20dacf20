// What a plugin is to the host: an object made by a named entry of a shared library, owned through Plugin, and deleted
// through it. Libraries are never unloaded.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "jobq/abi_version.h"
#include "jobq/config.h"
#include "jobq/error.h"
#include "jobq/log.h"
#include "jobq/time.h"

namespace jobq {

/// The kinds of thing a plugin can be. Each interface names its kind in kKind.
enum class PluginKind { storage, queuePolicy, rateLimiter, admissionFilter, handler, webhookTransport };

/// The word used in configuration keys (`storage.sqlite.readers`), in the handshake and by `jobqctl plugin`.
constexpr std::string_view nameOf(PluginKind kind) noexcept {
  switch (kind) {
    case PluginKind::storage: return "storage";
    case PluginKind::queuePolicy: return "queue";
    case PluginKind::rateLimiter: return "limiter";
    case PluginKind::admissionFilter: return "filter";
    case PluginKind::handler: return "handler";
    case PluginKind::webhookTransport: return "webhook";
  }
  return "";
}

/// One script that a plugin runs, as `GET /v1/plugins` and `jobqctl plugin` show it.
struct ScriptReport {
  std::string name;
  std::string fault;  ///< why its newest text does not run: the one before goes on; empty: it runs
};

/// The base of every plugin interface.
class JOBQ_VISIBLE Plugin : public abi::Versioned {
 public:
  virtual ~Plugin() = default;
  Plugin() = default;
  Plugin(const Plugin&) = delete;
  Plugin& operator=(const Plugin&) = delete;

  /// What it runs that lies outside its library, by name, and read anew; most plugins run nothing of the kind. Any
  /// thread.
  virtual std::vector<ScriptReport> scripts() const { return {}; }
};

/// What the host lends to a plugin at its creation. The references outlive the plugin object.
struct PluginEnv {
  const PluginConfig& config;          ///< this entry's own keys; valid during creation only
  Clock& clock;                        ///< the server's clock
  Log& log;                            ///< lines carry the entry's name
  std::filesystem::path dataDir;       ///< exists, mode 0700, locked by this server
  bool allowPrivateAddresses;          ///< `net.allowPrivate`, for net_guard.h
  std::filesystem::path scriptsDir{};  ///< where scripts of this kind lie: `<scripts.path>/handlers` or `/filters`
};

}  // namespace jobq
