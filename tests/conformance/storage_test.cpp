// Both storages of this tree, put to the suite. The libraries are the ones that the server loads.
#include "testkit/loaded_plugin.h"
#include "testkit/storage_suite_all.h"

namespace {

using namespace jobq;
using namespace jobq::testkit;

StorageUnderTest storage(const std::string& name, bool durable) {
  return {name,
          [name](Clock& clock, const std::filesystem::path& dir) {
            static SilentLog log;
            const MapConfig config;
            return loadPlugin<Storage>(JOBQ_PLUGIN_DIR "/libjobq_storage_" + name + ".so", name,
                                       PluginEnv{config, clock, log, dir, false});
          },
          durable};
}

}  // namespace

JOBQ_STORAGE_CONFORMANCE(Every, testing::Values(storage("memory", false), storage("sqlite", true)));
