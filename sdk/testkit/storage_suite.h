// The conformance suite of storages: tests for each rule of the storage contracts. The test of a storage is a few
// lines:
//
//     #include "testkit/storage_suite_all.h"
//     JOBQ_STORAGE_CONFORMANCE(Mine, testing::Values(jobq::testkit::StorageUnderTest{
//         "mine", [](jobq::Clock& clock, const std::filesystem::path& dir) { return openMine(clock, dir); }, true}));
//
// A single source file of a test program includes the header. Tests move time by hand, and no test sleeps.
#pragma once

#include <gtest/gtest.h>  // IWYU pragma: export
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/call_id.h"  // IWYU pragma: export
#include "jobq/holder.h"
#include "jobq/job.h"  // IWYU pragma: export
#include "jobq/mutex.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"  // IWYU pragma: export
#include "jobq/time.h"     // IWYU pragma: export
#include "jobq/transitions.h"
#include "testkit/manual_clock.h"
#include "testkit/outbox_access.h"  // IWYU pragma: export
#include "testkit/run_together.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"

namespace jobq::testkit {

/// A storage for the suite, with its properties.
struct StorageUnderTest {
  std::string name;
  /// Opens the storage on a directory, which may hold the files of an earlier storage. Clock and directory outlive the
  /// storage. The storage names receivers with PlainReceiverNames (plain_receiver_names.h).
  std::function<std::unique_ptr<Storage>(Clock&, const std::filesystem::path&)> open;
  bool durable = false;  ///< acknowledged changes survive closing and opening
};

inline std::ostream& operator<<(std::ostream& out, const StorageUnderTest& under) { return out << under.name; }

/// Returns all fields of a job as text: equal texts mean equal jobs.
inline std::string describe(const Job& job) {
  const auto millis = [](const std::optional<Instant>& at) { return at ? std::to_string(toEpochMillis(*at)) : "-"; };
  std::ostringstream text;
  text << job.endpoint << '/' << job.id << ' ' << nameOf(job.state) << " attempt " << job.attempt << " losses "
       << job.losses << " retries " << job.retries << " low " << job.lowPriority << " submitted "
       << millis(job.submittedAt) << " queued " << millis(job.queuedAt) << " started " << millis(job.startedAt)
       << " finished " << millis(job.finishedAt) << " expires " << millis(job.expiresAt) << " worker " << job.workerId
       << " output " << job.output << " progress " << job.progress << " error " << job.error << " key " << job.apiKeyId
       << " input " << job.input;
  return text.str();
}

/// Returns describe() of the job as a delivery has it, which does not name the API key.
inline std::string describeWithoutKey(Job job) {
  job.apiKeyId.clear();
  return describe(job);
}

/// A policy that ranks by `policy.priority` and needs no group.
class RankByPriority final : public QueuePolicy {
 public:
  std::string group(const JobSpec&) const override { return {}; }
  std::int64_t rank(const JobSpec& job, Instant, const GroupState&) const override { return job.policy.priority; }
};

/// A policy that gives groups turns: the rank is one more than the last rank of the group, and not below any queued
/// rank.
class TakeTurns final : public QueuePolicy {
 public:
  std::string group(const JobSpec& job) const override { return job.apiKeyId; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState& state) const override {
    return std::max(state.lastRank.value_or(-1) + 1, state.lowestWaiting.value_or(0));
  }
};

/// A storage on an empty folder with a clock that moves by hand: its stores, and how the storage is opened and closed.
class OpenStorage : public testing::TestWithParam<StorageUnderTest> {
 protected:
  void SetUp() override {
    storage_ = GetParam().open(clock_, dir_);
    newLife();
  }
  void TearDown() override { storage_.reset(); }

  JobStore& jobs() { return storage_->jobs(); }
  LeaseStore& leases() { return storage_->leases(); }
  ChunkStore& chunks() { return storage_->chunks(); }
  OutboxStore& outbox() { return storage_->outbox(); }
  RecordStore& records() { return storage_->records(); }
  NodeStore& nodes() { return storage_->nodes(); }

  /// Begins another life of the test's node, as a server does at its start: the next sweep() takes back all jobs that
  /// were claimed before.
  void newLife() { holder_ = nodes().join("node"); }

  /// Closes the storage and opens the storage again on the same directory. The life of the test's node goes on.
  void reopen() {
    storage_.reset();
    storage_ = GetParam().open(clock_, dir_);
  }

  /// Runs `body` with the storage open in a child process, which then dies without closing the storage; afterwards
  /// opens the storage here again with a new life. `body` does not move the clock. The test fails if `body` fails.
  void inAProcessThatDies(const std::function<void()>& body) {
    storage_.reset();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      storage_ = GetParam().open(clock_, dir_);
      newLife();
      body();
      _exit(HasFailure() ? 1 : 0);
    }
    const HangGuard guard("the end of the other process", kWorkDeadline);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);  // bounded by the guard
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the other process failed";
    storage_ = GetParam().open(clock_, dir_);
    newLife();
  }

  ManualClock clock_;
  const TemporaryFolder dir_;
  std::unique_ptr<Storage> storage_;
  Holder holder_;  // the life of the test's node
};

/// Short forms of the operations on the chunks and the log of a job.
class JobOutput : public OpenStorage {
 protected:
  /// Returns the id of a call, which no other call has, not even in another process of the test.
  CallId nextCall() { return (static_cast<CallId>(getpid()) << 32U) + ++lastCall_; }
  /// Adds chunks behind the chunks that this test has added to the attempt.
  ReportResult append(const LeaseRef& lease, std::vector<Chunk> added) {
    std::uint64_t& next = nextChunks_[{lease.job, lease.attempt}];
    const std::size_t count = added.size();
    const ReportResult result = chunks().append(lease, next, std::move(added));
    if (result == ReportResult::accepted) next += count;
    return result;
  }
  /// Adds log lines behind the lines that this test has added to the job.
  ReportResult appendLog(const LeaseRef& lease, std::vector<LogLine> added) {
    std::uint64_t& next = nextLines_[lease.job];
    const std::size_t count = added.size();
    const ReportResult result = chunks().appendLog(lease, next, std::move(added));
    if (result == ReportResult::accepted) next += count;
    return result;
  }
  std::optional<ChunkPage> consume(const JobKey& key, std::size_t maxBytes) {
    return chunks().consume(key, maxBytes, nextCall());
  }
  static std::string outputsOf(const ChunkPage& page) {
    std::string outputs;
    for (const Chunk& chunk : page.chunks) outputs += chunk.output;
    return outputs;
  }
  std::vector<Chunk> taken(const JobId& id) {
    const auto page = consume({"ep", id}, 1'000'000);
    EXPECT_TRUE(page) << id << " is absent";
    return page ? page->chunks : std::vector<Chunk>();
  }

 private:
  std::map<std::pair<JobId, std::uint32_t>, std::uint64_t> nextChunks_;  // by attempt
  std::map<JobId, std::uint64_t> nextLines_;
  std::atomic<CallId> lastCall_ = 0;
};

/// Fixture of the suite: short forms of the operations in the life of a job, from its submission to its deliveries.
class StorageSuite : public JobOutput {
 protected:
  static JobSpec spec(const JobId& id, const EndpointId& endpoint = "ep") {
    JobSpec job;
    job.id = id;
    job.endpoint = endpoint;
    job.apiKeyId = "key";
    job.input = "{\"n\":1.0}";
    return job;
  }
  void submit(JobSpec job) {
    ASSERT_TRUE(std::holds_alternative<Inserted>(storage_->jobs().insert(std::move(job), policy_)));
  }
  void submit(const JobId& id) { submit(spec(id)); }

  std::vector<ClaimedJob> claim(std::size_t max, const EndpointId& endpoint = "ep") {
    return claimAs(holder_, max, endpoint);
  }
  std::vector<ClaimedJob> claimAs(const Holder& holder, std::size_t max, const EndpointId& endpoint = "ep") {
    ClaimWant want{endpoint, {}};
    for (std::size_t i = 0; i < max; ++i) want.workers.push_back("w" + std::to_string(i));
    return storage_->leases().claim(std::vector{want}, holder, nextCall()).jobs;
  }
  LeaseRef claimOne(const EndpointId& endpoint = "ep") {
    auto jobs = claim(1, endpoint);
    EXPECT_EQ(jobs.size(), 1U);
    return jobs.empty() ? LeaseRef{} : jobs[0].lease;
  }
  /// Returns the state of one attempt.
  LeaseState leaseState(const LeaseRef& lease) { return leases().states(std::vector{lease}).at(0); }
  ReportResult complete(const LeaseRef& lease, const std::string& output = "{\"ok\":true}") {
    return storage_->leases().finish(lease, Completed{output});
  }
  ReportResult fail(const LeaseRef& lease, const std::string& error = "no") {
    return storage_->leases().finish(lease, Failed{error, ""});
  }
  /// Retries the last attempt of the job.
  RequeueResult requeue(const JobKey& key, const QueuePolicy& policy) {
    const auto job = jobs().find(key);
    return jobs().requeue(key, job ? job->attempt : 0, policy);
  }
  std::optional<Job> find(const JobId& id, const EndpointId& endpoint = "ep") {
    return storage_->jobs().find({endpoint, id});
  }
  JobState stateOf(const JobId& id) {
    const auto job = find(id);
    EXPECT_TRUE(job) << id << " is absent";
    return job ? job->state : JobState::inQueue;
  }
  EndpointCounts counts(const EndpointId& endpoint = "ep") { return storage_->jobs().counts(endpoint); }
  SweepResult sweep() { return storage_->leases().sweep(1'000); }
  void sweepAll() {
    while (storage_->leases().sweep(1'000).more) continue;
  }
  /// Returns the last claim of a delivery, for reports about the delivery.
  DeliveryClaim last(const std::string& delivery) { return lastClaim(outbox(), delivery); }
  std::vector<Delivery> claimDue(Millis lease) { return claimAllDue(outbox(), lease); }

  /// Brings a new job into `state`. Returns the lease of the job's last attempt.
  LeaseRef bring(const JobId& id, JobState state) {
    JobSpec job = spec(id);
    job.policy.executionTimeout = Millis(5'000);
    submit(std::move(job));
    if (state == JobState::inQueue) return {id, 0};
    if (state == JobState::cancelled) {
      EXPECT_TRUE(std::holds_alternative<Cancelled>(storage_->jobs().cancel({"ep", id})));
      return {id, 0};
    }
    const LeaseRef lease = claimOne();
    EXPECT_EQ(lease.job, id);
    if (state == JobState::completed) {
      EXPECT_EQ(complete(lease), ReportResult::accepted);
    }
    if (state == JobState::failed) {
      EXPECT_EQ(fail(lease), ReportResult::accepted);
    }
    if (state == JobState::timedOut) {
      clock_.advance(Millis(5'000));
      (void)sweep();
    }
    return lease;
  }

  /// Runs `body(i)` on `count` threads that start together.
  static void race(int count, const std::function<void(int)>& body) { runTogether(count, body); }

  RankByPriority policy_;
};

/// All states, with IN_QUEUE last: the next bring() would claim a queued job.
inline constexpr JobState kAllStates[] = {JobState::inProgress, JobState::completed, JobState::failed,
                                          JobState::cancelled,  JobState::timedOut,  JobState::inQueue};

}  // namespace jobq::testkit
