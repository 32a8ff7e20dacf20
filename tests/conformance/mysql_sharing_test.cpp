// Several nodes on one database, and failures of connections and of the server.
#include <atomic>
#include <map>
#include <random>
#include <thread>

#include "jobq/mutex.h"
#include "mysql_fixture.h"
#include "testkit/run_together.h"
#include "testkit/wait_for.h"

namespace jobq::test {
namespace {

using namespace jobq::testkit;

class MysqlNodes : public MysqlTest {
 protected:
  static constexpr int kThreads = 4;  // of each node: claimants
  static constexpr int kNodes = 2;

  void SetUp() override {
    for (int i = 0; i < kNodes; ++i) {
      nodes_.push_back(open());
      holders_.push_back(nodes_[i]->nodes().join("node" + std::to_string(i)));
    }
  }
  void TearDown() override { nodes_.clear(); }

  CallId nextCall() { return ++lastCall_; }

  /// Submits `jobs` jobs over both nodes.
  void submit(int thread, int jobs) {
    JobStore& store = nodes_[thread % kNodes]->jobs();
    for (int i = 0; i < jobs; ++i) {
      const JobId id = "j" + std::to_string(thread) + "-" + std::to_string(i);
      untilAnswered([&] { return store.insert(spec(id), policy_); });
    }
  }

  std::vector<ClaimedJob> claim(LeaseStore& store, const Holder& holder, std::size_t most) {
    ClaimWant want{"ep", {}};
    for (std::size_t i = 0; i < most; ++i) want.workers.push_back("w" + std::to_string(i));
    const std::vector<ClaimWant> wants{want};
    const CallId id = nextCall();
    try {
      return store.claim(wants, holder, id).jobs;
    } catch (const OutcomeUnknown&) {
      return untilAnswered([&] { return store.claimed(wants, id); });
    } catch (const StorageError&) {
      return {};
    }
  }

  /// Claims and finishes jobs until `total` jobs are finished over all threads.
  void work(int thread, int total) {
    LeaseStore& store = nodes_[thread % kNodes]->leases();
    const WaitDeadline deadline("the end of all jobs", kWorkDeadline);
    while (finished_ < total) {
      const auto jobs = claim(store, holders_[thread % kNodes], 1 + thread % 3);
      if (jobs.empty()) deadline.pause();
      for (const ClaimedJob& job : jobs) {
        {
          Lock lock(mutex_);
          ++runs_[job.lease.job];
        }
        const auto result = untilAnswered([&] { return store.finish(job.lease, Completed{"\"done\""}); });
        EXPECT_EQ(result, ReportResult::accepted) << job.lease.job;
        ++finished_;
      }
    }
  }

  void runAll(int jobs) {
    constexpr int kSubmitters = 2;
    runTogether(kSubmitters + kNodes * kThreads, [&](int thread) {
      if (thread < kSubmitters) return submit(thread, jobs / kSubmitters);
      work(thread, jobs);
    });
  }

  void expectEachRanOnce(int jobs) {
    Lock lock(mutex_);
    EXPECT_EQ(runs_.size(), static_cast<std::size_t>(jobs));
    for (const auto& [id, runs] : runs_) EXPECT_EQ(runs, 1) << id;
    for (const auto& node : nodes_) {
      const EndpointCounts counts = node->jobs().counts("ep");
      EXPECT_EQ(counts.completed, static_cast<std::uint64_t>(jobs));
      EXPECT_EQ(counts.inQueue + counts.inProgress + counts.retried, 0U);
    }
    EXPECT_EQ(server().ask(database(), "SELECT COUNT(*) FROM job WHERE state = 2 AND attempt = 1"),
              std::vector{std::to_string(jobs)});
    for (const char* table : {"ready_job", "running_job"}) {
      EXPECT_EQ(server().ask(database(), std::string("SELECT COUNT(*) FROM ") + table), std::vector<std::string>{"0"});
    }
  }

  /// Waits until a transaction waits for a lock.
  void awaitLockWait() {
    testkit::waitFor("a transaction that waits for a lock", [&] {
      return server().ask("",
                          "SELECT variable_value FROM information_schema.global_status "
                          "WHERE variable_name = 'Innodb_row_lock_current_waits'") != std::vector<std::string>{"0"};
    });
  }

  std::vector<std::unique_ptr<Storage>> nodes_;
  std::vector<Holder> holders_;
  std::atomic<CallId> lastCall_ = 0;
  std::atomic<int> finished_ = 0;
  Mutex mutex_;
  std::map<JobId, int> runs_ JOBQ_GUARDED_BY(mutex_);
};

TEST_F(MysqlNodes, ShareTheJobsAndRunEachOnce) {
  constexpr int kJobs = 2'000;
  runAll(kJobs);
  expectEachRanOnce(kJobs);
}

TEST_F(MysqlNodes, RunEachJobOnceWhileConnectionsBreak) {
  constexpr int kJobs = 1'000;
  std::atomic<bool> done = false;
  std::atomic<int> killed = 0;
  const std::string mine = "SELECT id FROM information_schema.processlist WHERE db = '" + database() + "'";
  std::thread killer([&] {
    std::minstd_rand random(7);
    while (!done) {
      const auto sessions = server().ask("", mine);
      try {
        if (!sessions.empty()) server().run("", {"KILL CONNECTION " + sessions[random() % sessions.size()]});
        ++killed;
      } catch (const std::runtime_error&) {  // NOLINT: the session has just ended
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    }
  });
  runAll(kJobs);
  done = true;
  testkit::join("the thread that breaks connections", killer);
  EXPECT_GT(killed, 10);
  expectEachRanOnce(kJobs);
}

TEST_F(MysqlNodes, GoOnAfterARestartOfTheServer) {
  submit(0, 10);
  const auto before = claim(nodes_[0]->leases(), holders_[0], 3);
  ASSERT_EQ(before.size(), 3U);
  server().run("", {"SET GLOBAL innodb_flush_log_at_trx_commit = 1"});
  submit(1, 10);
  server().kill();
  for (const auto& node : nodes_) {
    EXPECT_THROW((void)node->jobs().find({"ep", "j0-0"}), StorageError);
    EXPECT_THROW((void)node->jobs().insert(spec("late"), policy_), StorageError);
    EXPECT_THROW(node->check(), StorageError);
  }
  server().start();
  for (const auto& node : nodes_) {
    node->check();
    EXPECT_EQ(node->jobs().counts("ep").inQueue, 17U);
  }
  EXPECT_EQ(nodes_[1]->leases().finish(before[0].lease, Completed{"1"}), ReportResult::accepted);
  EXPECT_EQ(claim(nodes_[1]->leases(), holders_[1], 99).size(), 17U);
  EXPECT_FALSE(nodes_[0]->jobs().find({"ep", "late"}));
}

// The transaction of the first call is still open in the database when the call is repeated, as after a broken
// connection whose COMMIT the server has not yet reached.
TEST_F(MysqlNodes, ARepeatedCallWaitsForTheStepBefore) {
  submit(0, 1);
  std::atomic<bool> answered = false;
  std::thread repeated;
  {
    const mysql::Connector connector{mysql::Options(MapConfig(settingsFor(server(), database())))};
    const auto first = connector.open(mysql::Isolation::readCommitted);
    first->execute("BEGIN");
    first->execute("UPDATE job SET state = 4 WHERE id = 'j0-0'");
    first->execute("DELETE FROM ready_job");
    first->execute("UPDATE endpoint_count SET in_queue = in_queue - 1, is_cancelled = is_cancelled + 1 LIMIT 1");
    repeated = std::thread([&] {
      const auto result = nodes_[1]->jobs().cancel({"ep", "j0-0"});
      EXPECT_TRUE(std::holds_alternative<Cancelled>(result));
      answered = true;
    });
    awaitLockWait();
    EXPECT_FALSE(answered);
    first->execute("COMMIT");
  }
  testkit::join("the repeated call", repeated);
  EXPECT_EQ(nodes_[0]->jobs().counts("ep").inQueue, 0U);
}

TEST_F(MysqlNodes, AskForClaimedJobsBehindTheClaimUnderWay) {
  submit(0, 1);
  const mysql::Connector connector{mysql::Options(MapConfig(settingsFor(server(), database())))};
  const auto claimant = connector.open(mysql::Isolation::readCommitted);
  claimant->execute("BEGIN");
  claimant->execute("SET @epoch = (SELECT epoch FROM node WHERE name = 'node0' LOCK IN SHARE MODE)");
  std::atomic<bool> answered = false;
  std::thread asking([&] {
    const auto jobs = nodes_[0]->leases().claimed(std::vector{ClaimWant{"ep", {"w"}}}, 77);
    EXPECT_EQ(jobs.size(), 1U);
    answered = true;
  });
  awaitLockWait();
  EXPECT_FALSE(answered);
  claimant->execute("UPDATE job SET state = 1, attempt = 1, started_at = submitted_at, worker = 'w', claim = 77");
  claimant->execute("COMMIT");
  testkit::join("the question for claimed jobs", asking);
}

}  // namespace
}  // namespace jobq::test
