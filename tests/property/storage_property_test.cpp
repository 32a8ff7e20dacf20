// Random operations against each storage and the model: every answer must equal the answer of the model. A failing
// sequence is shortened and printed with its seed.
#include <gtest/gtest.h>

#include <filesystem>

#include "judge.h"
#include "random_operations.h"
#include "real_policies.h"
#include "seeds.h"
#include "shrink.h"
#include "testkit/loaded_plugin.h"
#include "testkit/temporary_folder.h"
#include "tests/conformance/named_storages.h"

namespace jobq::model {
namespace {

constexpr std::size_t kOperations = 140;

class StorageProperty : public testing::TestWithParam<const char*> {
 protected:
  std::unique_ptr<Storage> open(Clock& clock) {
    static testkit::SilentLog log;
    static const testkit::MapConfig config;
    return testkit::openNamed(GetParam(), PluginEnv{config, clock, log, dir_, false});
  }

  /// Only policies with answers depending on the state: other policies return numbers, sortable by any storage.
  static const QueuePolicy* policyOf(std::uint64_t seed) {
    if (seed % 3 == 0) return nullptr;
    return &realPolicy(seed % 3 == 1 ? "fair" : "deadline");
  }

  /// Returns the first difference; empty if every answer was right.
  std::string play(const std::vector<Operation>& operations, const QueuePolicy* policy) {
    dir_.clear();
    testkit::ManualClock clock;
    Judge judge(open(clock));
    Player player("j", clock, policy);
    try {
      for (const Operation& operation : operations) player.play(judge, operation);
      judge.inspect();
    } catch (const Disagreement& found) {
      return found.what();
    }
    return {};
  }

  const testkit::TemporaryFolder dir_;
};

TEST_P(StorageProperty, EveryAnswerIsTheModels) {
  const std::string storage = GetParam();
  const Seeds seeds(storage == "memory" ? 10'000 : storage == "sqlite" ? 300 : 60);
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    const auto operations = randomOperations(seed, kOperations);
    const QueuePolicy* policy = policyOf(seed);
    const auto fails = [this, policy](const auto& some) { return !play(some, policy).empty(); };
    if (!fails(operations)) continue;
    const auto fewest = shrink<Operation>(operations, fails);
    std::string report;
    for (const Operation& operation : fewest) report += "\n  " + text(operation);
    FAIL() << "seed " << seed << ": " << play(fewest, policy) << "\nafter" << report;
  }
}

INSTANTIATE_TEST_SUITE_P(Each, StorageProperty, testing::ValuesIn(testkit::andMysql({"memory", "sqlite"})),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace jobq::model
