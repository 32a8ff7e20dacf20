// Tests of the queue order made by `fair`, with the storages and policies loaded by the server. The clock is moved by
// hand: one worker claims a job each millisecond, and a job's delay in milliseconds equals the number of jobs claimed
// earlier.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <thread>

#include "jobq/storage.h"
#include "testkit/loaded_plugin.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"

namespace {

using namespace jobq;

constexpr int kNoisyJobs = 10'000;
constexpr int kQuietKeys = 9;
constexpr int kQuietJobs = 100;  // jobs of each quiet key

using Delays = std::map<std::string, std::vector<std::int64_t>>;  // by key, in ms

std::int64_t p99(std::vector<std::int64_t> delays) {
  std::sort(delays.begin(), delays.end());
  return delays.at((delays.size() * 99 + 99) / 100 - 1);
}

class Fairness : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    policy_ = load<QueuePolicy>("queue_", "fair");
    storage_ = load<Storage>("storage_", GetParam());
    holder_ = storage_->nodes().join("node");
  }
  void TearDown() override { storage_.reset(); }

  template <class Interface>
  std::unique_ptr<Interface> load(const std::string& kind, const std::string& name) {
    static testkit::SilentLog log;
    static const testkit::MapConfig config;
    return testkit::loadPlugin<Interface>(JOBQ_PLUGIN_DIR "/libjobq_" + kind + name + ".so", name,
                                          PluginEnv{config, clock_, log, dir_, false});
  }

  /// Submits a job of the key at the begin of `id`, up to a dash.
  void submit(const std::string& id, bool low = false) {
    JobSpec job;
    job.id = id;
    job.endpoint = "ep";
    job.apiKeyId = keyOf(id);
    job.input = "{}";
    job.policy.lowPriority = low;
    ASSERT_TRUE(std::holds_alternative<Inserted>(storage_->jobs().insert(std::move(job), *policy_)));
  }
  void submitMany(const std::string& key, int count, bool low = false) {
    for (int i = 0; i < count; ++i) submit(key + "-" + std::to_string(i), low);
  }
  /// Submits a burst from 16 callers, to let a durable storage commit many jobs at once.
  void submitNoisy() {
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 16; ++caller) {
      callers.emplace_back([this, caller] {
        for (int i = caller; i < kNoisyJobs; i += 16) submit("noisy-" + std::to_string(i));
      });
    }
    testkit::joinAll("the callers", callers);
  }

  std::vector<ClaimedJob> claim(std::size_t most) {
    const std::vector wants{ClaimWant{"ep", std::vector<WorkerId>(most, "w")}};
    return storage_->leases().claim(wants, holder_, 1).jobs;
  }
  /// Claims the next jobs and returns their ids.
  std::vector<JobId> taken(std::size_t most) {
    std::vector<JobId> ids;
    for (const ClaimedJob& job : claim(most)) ids.push_back(job.lease.job);
    return ids;
  }
  /// Claims the next jobs and returns their keys.
  std::vector<std::string> turns(std::size_t most) {
    std::vector<std::string> keys;
    for (const JobId& id : taken(most)) keys.push_back(keyOf(id));
    return keys;
  }
  static std::string keyOf(const std::string& id) { return id.substr(0, id.find('-')); }

  /// Measures the delays of nine quiet keys. Each key submits a job every `apart` ms, or all jobs at once with 0,
  /// beside the noisy key or alone. One job each millisecond is claimed until all jobs of the quiet keys are claimed,
  /// or for `most` ms; jobs still waiting then count as claimed.
  Delays delaysOfQuiet(bool noisy, int apart, int most) {
    storage_.reset();
    dir_.clear();
    storage_ = load<Storage>("storage_", GetParam());
    holder_ = storage_->nodes().join("node");
    if (noisy) submitNoisy();
    std::map<JobId, int> waiting;
    Delays delays;
    int submitted = 0;
    for (int now = 0; now < most && (submitted < kQuietJobs || !waiting.empty()); ++now, clock_.advance(Millis(1))) {
      for (; submitted < kQuietJobs && submitted * apart <= now; ++submitted) {
        for (int key = 0; key < kQuietKeys; ++key) {
          const JobId id = "quiet" + std::to_string(key) + "-" + std::to_string(submitted);
          submit(id);
          waiting.emplace(id, now);
        }
      }
      // The job is never finished: its end would change no position.
      for (const JobId& id : taken(1)) {
        if (const auto job = waiting.extract(id)) delays[keyOf(id)].push_back(now - job.mapped());
      }
    }
    for (const auto& [id, since] : waiting) delays[keyOf(id)].push_back(most - since);
    return delays;
  }

  /// The cost of a noisy key for a quiet key, by p99 of the delays; the worst of the nine keys.
  struct Cost {
    double times = 0;       ///< quotient of the delays beside and without the noisy key
    std::int64_t more = 0;  ///< difference of the delays in ms
  };
  Cost costOfANoisyKey(const std::string& policy, int apart) {
    policy_ = load<QueuePolicy>("queue_", policy);
    const Delays alone = delaysOfQuiet(false, apart, 20'000);
    const Delays together = delaysOfQuiet(true, apart, apart == 0 ? 4 * kQuietKeys * kQuietJobs : 20'000);
    Cost worst;
    std::cout << policy << ", p99 of each key without the noisy one and beside it, ms:";
    for (const auto& [key, delays] : together) {
      EXPECT_EQ(delays.size(), static_cast<std::size_t>(kQuietJobs)) << key;
      const std::int64_t before = p99(alone.at(key)), now = p99(delays);
      std::cout << "  " << before << " " << now;
      worst.times =
          std::max(worst.times, static_cast<double>(now) / static_cast<double>(std::max<std::int64_t>(before, 1)));
      worst.more = std::max(worst.more, now - before);
    }
    std::cout << std::endl;
    EXPECT_EQ(together.size(), static_cast<std::size_t>(kQuietKeys));
    return worst;
  }

  testkit::ManualClock clock_;
  const testkit::TemporaryFolder dir_;
  std::unique_ptr<QueuePolicy> policy_;
  std::unique_ptr<Storage> storage_;
  Holder holder_;
};

// Required fairness: one key queues 10,000 jobs before each of nine other keys queues 100 jobs.
TEST_P(Fairness, QuietKeysWaitAtMostTwiceAsLongBesideANoisyOne) {
  EXPECT_LE(costOfANoisyKey("fair", 0).times, 2.0);
  EXPECT_GT(costOfANoisyKey("fifo", 0).times, 2.0) << "the policy fifo exceeds the bound";
}

TEST_P(Fairness, QuietKeysThatSubmitNowAndThenWaitForOneOfTheBacklogAtMost) {
  EXPECT_LE(costOfANoisyKey("fair", 20).more, 1);
}

TEST_P(Fairness, KeysTakeTurnsOneByOne) {
  submitMany("a", 3);
  submitMany("b", 2);
  submitMany("", 3);  // jobs without a key form a group like every other group
  submitMany("c", 1);
  EXPECT_EQ(turns(9), (std::vector<std::string>{"a", "b", "", "c", "a", "b", "", "a", ""}));
}

TEST_P(Fairness, ANewKeyStartsAtTheHeadOfTheQueue) {
  submitMany("a", 50);
  EXPECT_EQ(taken(20).back(), "a-19");
  submitMany("new", 3);
  EXPECT_EQ(taken(7), (std::vector<JobId>{"a-20", "new-0", "a-21", "new-1", "a-22", "new-2", "a-23"}));
}

TEST_P(Fairness, UnusedTurnsOfAKeyAreNoCredit) {
  submitMany("quiet", 1);
  submitMany("a", 200);
  EXPECT_EQ(turns(150).front(), "quiet");
  for (int i = 1; i < 20; ++i) submit("quiet-" + std::to_string(i));
  EXPECT_EQ(turns(4), (std::vector<std::string>{"a", "quiet", "a", "quiet"}));
}

TEST_P(Fairness, AFinishedBurstIsHeldAgainstNoCaller) {
  submitMany("noisy", 1'000);
  EXPECT_EQ(taken(1'000).size(), 1'000U);
  clock_.advance(Millis(1));  // fewer than a thousand jobs arrive in a millisecond
  submitMany("new", 3);
  for (int i = 0; i < 3; ++i) submit("noisy-again" + std::to_string(i));
  EXPECT_EQ(turns(6), (std::vector<std::string>{"new", "noisy", "new", "noisy", "new", "noisy"}));
}

TEST_P(Fairness, AWaitingLowPriorityJobDoesNotStopTheTimeOfNormalJobs) {
  submit("low-0", true);
  submitMany("old", 500);
  EXPECT_EQ(turns(500), std::vector<std::string>(500, "old"));
  clock_.advance(Millis(1));
  submitMany("new", 200);
  submit("old-again");
  EXPECT_EQ(turns(2), (std::vector<std::string>{"new", "old"}))
      << "nobody's history, though a job has waited all along";
}

TEST_P(Fairness, LowPriorityJobsTakeTurnsAmongThemselves) {
  submitMany("noisy", 300, true);
  submitMany("normal", 3);
  submit("noisy-normal");  // the low-priority jobs of the key do not count here
  clock_.advance(Millis(5'000));
  submitMany("quiet", 2, true);
  EXPECT_EQ(turns(8), (std::vector<std::string>{"normal", "noisy", "normal", "normal",  // normal jobs come first
                                                "noisy", "quiet", "noisy", "quiet"}));
}

TEST_P(Fairness, ARetryGetsThePlaceOfANewJobOfTheSameKey) {
  submitMany("a", 6);
  submitMany("b", 2);
  const auto first = claim(1);
  ASSERT_EQ(first.at(0).lease.job, "a-0");
  ASSERT_EQ(storage_->leases().finish(first[0].lease, Failed{"no", ""}), ReportResult::accepted);
  clock_.advance(Millis(1'000));
  ASSERT_TRUE(
      std::holds_alternative<Requeued>(storage_->jobs().requeue({"ep", "a-0"}, first[0].lease.attempt, *policy_)));
  EXPECT_EQ(taken(8), (std::vector<JobId>{"b-0", "a-1", "b-1", "a-2", "a-3", "a-4", "a-5", "a-0"}));
}

INSTANTIATE_TEST_SUITE_P(Each, Fairness, testing::Values("memory", "sqlite"),
                         [](const auto& info) { return info.param; });

}  // namespace
