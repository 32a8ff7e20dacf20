// The storages in the tree under the storage suites, also over a connection that loses answers. The libraries are the
// plugins loaded by the server; the memory storage is also tested as shared by several servers of one process.
#include "memory_storage.h"
#include "query_plans.h"
#include "testkit/later_inserts.h"
#include "testkit/loaded_plugin.h"
#include "testkit/lost_answers.h"
#include "testkit/plain_receiver_names.h"
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

/// Gives access to the ABI minor of an object, which only its library sets.
template <auto kMember>
struct MinorOf {
  friend std::uint32_t& minorOf(jobq::abi::Versioned& object) { return object.*kMember; }
};
std::uint32_t& minorOf(jobq::abi::Versioned& object);
template struct MinorOf<&jobq::abi::Versioned::abiMinor_>;

}  // namespace

namespace jobq::test {

// A storage of ABI minor 0 has no LeaseStore::doLose().
TEST(OlderStorage, ReleasesTheJobOfALostWorker) {
  testkit::ManualClock clock;
  const testkit::TemporaryFolder folder;
  const RankByPriority policy;
  const auto open = sharedMemory().open(clock, folder);
  JobSpec job;
  job.id = "a";
  job.endpoint = "ep";
  job.maxAttempts = 1;
  (void)open->jobs().insert(std::move(job), policy, std::nullopt);
  const Holder holder = open->nodes().join("node");
  const auto claimed = open->leases().claim(std::vector{ClaimWant{"ep", {"w"}}}, holder, 1);
  minorOf(open->leases()) = 0;
  const SweepResult lost = open->leases().lose(std::vector{claimed.at(0).lease});
  EXPECT_TRUE(lost.stopped.empty());
  EXPECT_TRUE(lost.finished.empty());
  EXPECT_TRUE(lost.requeuedAt.empty());
  const auto released = open->jobs().find({"ep", "a"});
  EXPECT_EQ(released->state, JobState::inQueue);
  EXPECT_EQ(released->attempt, 2U);
  EXPECT_EQ(released->losses, 0U);
  EXPECT_EQ(open->jobs().counts("ep").retried, 0U);
}

// A storage of ABI minor 3 has no Storage::doInsertLater().
TEST(OlderStorage, TellsTheReceiverThatNoJobIsInsertedLater) {
  testkit::ManualClock clock;
  const testkit::TemporaryFolder folder;
  const RankByPriority policy;
  const auto open = storage("memory", false).open(clock, folder);
  ASSERT_TRUE(open->insertsLater());
  minorOf(*open) = 3;
  EXPECT_FALSE(open->insertsLater());
  JobSpec job;
  job.id = "a";
  job.endpoint = "ep";
  LaterInserts inserts;
  open->insertLater(std::move(job), policy, std::nullopt, inserts.addReceiver());
  EXPECT_EQ(inserts.calls(), std::vector<std::string>{"StorageError"});
  EXPECT_EQ(inserts.destroyed(), 1U);
  EXPECT_FALSE(open->jobs().find({"ep", "a"}));
}

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
