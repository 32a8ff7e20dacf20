// The build found no program mariadbd: tests of all storages leave the storage mysql out.
#include <stdexcept>

#include "named_storages.h"

namespace jobq::testkit {
namespace {

[[noreturn]] void refuse() { throw std::logic_error("this program was built on a machine without mariadbd"); }

}  // namespace

bool hasMysql() { return false; }

std::unique_ptr<Storage> openMysqlOf(const PluginEnv&) { refuse(); }

std::string mysqlSettingsOf(const std::filesystem::path&) { refuse(); }

}  // namespace jobq::testkit
