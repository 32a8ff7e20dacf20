// The storages in the tree under the storage suites, also over a connection that loses answers. The libraries are the
// plugins loaded by the server; the memory storage is also tested as shared by several servers of one process.
#include "memory_storage.h"
#include "query_plans.h"
#include "testkit/later_inserts.h"
#include "testkit/loaded_plugin.h"
#include "testkit/lost_answers.h"
#include "testkit/plain_receiver_names.h"
#include "testkit/returned_jobs.h"
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

StorageUnderTest sharedMemory() {
  return {"shared_memory",
          [](Clock& clock, const std::filesystem::path& dir) {
            static SilentLog log;
            static const MapConfig config;
            static const PlainReceiverNames names;
            return std::make_unique<memory::MemoryStorage>(PluginEnv{config, clock, log, dir, false, {}, &names},
                                                           Millis(15'000));
          },
          false};
}

}  // namespace

namespace jobq::test {

// Every other test judges its prepared statements; the test here shows active judging.
TEST(QueryPlans, AreAskedFor) {
  testkit::ManualClock clock;
  const testkit::TemporaryFolder folder;
  const auto open = storage("sqlite", true).open(clock, folder);
  (void)open->jobs().list({"ep", std::nullopt}, {});
  EXPECT_GT(judgedSteps(), 0);
}

}  // namespace jobq::test

JOBQ_STORAGE_CONFORMANCE(Every,
                         testing::Values(storage("memory", false), sharedMemory(), storage("sqlite", true),
                                         withLostAnswers(storage("memory", false)), withLostAnswers(sharedMemory()),
                                         withLostAnswers(storage("sqlite", true))));
