// Opens the plugin storage_mysql, with the clock of the host, on a database of the test's server.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "jobq/log.h"
#include "jobq/plugin.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "mariadb_server.h"
#include "testkit/loaded_plugin.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

using Settings = std::map<std::string, std::string, std::less<>>;

/// Returns the settings for a database of the server.
inline Settings settingsFor(const MariadbServer& server, const std::string& database) {
  return {{"socket", server.socket()}, {"user", "root"}, {"database", database}};
}

/// Opens the plugin. Throws StorageError or ConfigError.
inline std::unique_ptr<Storage> openMysql(Clock& clock, Log& log, const Settings& settings) {
  const MapConfig config(settings);
  return loadPlugin<Storage>(JOBQ_MYSQL_PLUGIN, "mysql", PluginEnv{config, clock, log, {}, false});
}

/// Returns the storage for the conformance suite: each folder has a database of its own.
inline StorageUnderTest mysqlUnderTest() {
  return {"mysql",
          [](Clock& clock, const std::filesystem::path& folder) {
            static SilentLog log;
            return openMysql(clock, log, settingsFor(MariadbServer::shared(), databaseOf(folder)));
          },
          true};
}

}  // namespace jobq::testkit
