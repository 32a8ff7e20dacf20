// The storages of the tree by name, for tests that run one program with each storage. The storage mysql is included on
// a machine with the program mariadbd: the build links mysql_present.cpp there, and mysql_absent.cpp elsewhere.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "jobq/plugin.h"
#include "jobq/storage.h"
#include "testkit/loaded_plugin.h"

namespace jobq::testkit {

/// Returns whether this program can open the storage mysql.
bool hasMysql();
/// Opens the storage mysql on the database of the folder `env.dataDir`; the settings of `env` are not used. A cleared
/// folder has an empty database.
std::unique_ptr<Storage> openMysqlOf(const PluginEnv& env);
/// Returns lines for a configuration file: the database of the folder, and the folder of the plugin.
std::string mysqlSettingsOf(const std::filesystem::path& folder);

/// Returns the names, and after them "mysql" if the program can open a storage of MySQL.
inline std::vector<const char*> andMysql(std::vector<const char*> names) {
  if (hasMysql()) names.push_back("mysql");
  return names;
}

/// Opens the storage on the folder `env.dataDir`. Throws StorageError.
inline std::unique_ptr<Storage> openNamed(const std::string& name, const PluginEnv& env) {
  if (name == "mysql") return openMysqlOf(env);
  return loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_" + name + ".so", name, env);
}

/// Returns the lines of a configuration file that choose the storage and the folders of plugins.
inline std::string settingsOfNamed(const std::string& name, const std::filesystem::path& folder) {
  const bool isMysql = name == "mysql";
  return "storage = " + name + "\n" +
         (isMysql ? mysqlSettingsOf(folder) : "plugins.path = " + std::string(JOBQ_PLUGIN_DIR) + "\n");
}

}  // namespace jobq::testkit
