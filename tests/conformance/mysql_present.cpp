// The storage mysql on the database server of the test process.
#include "named_storages.h"
#include "open_mysql.h"

namespace jobq::testkit {

bool hasMysql() { return true; }

std::unique_ptr<Storage> openMysqlOf(const PluginEnv& env) {
  return openMysql(env.clock, env.log, settingsFor(MariadbServer::shared(), databaseOf(env.dataDir)));
}

// The first of two plugins with one name counts.
std::string mysqlSettingsOf(const std::filesystem::path& folder) {
  const std::string plugins = std::filesystem::path(JOBQ_MYSQL_PLUGIN).parent_path().string();
  std::string lines = "plugins.path = " + plugins + ":" JOBQ_PLUGIN_DIR "\n";
  for (const auto& [key, value] : settingsFor(MariadbServer::shared(), databaseOf(folder))) {
    lines.append("storage.mysql.").append(key).append(" = ").append(value).append("\n");
  }
  return lines;
}

}  // namespace jobq::testkit
