// A storage behind a connection that loses the answer of each repeatable call, whose caller repeats the call at once
// (sdk/include/jobq/storage.h, "Repeatable"). The conformance suite runs against this storage too: a repeated call has
// the effect of a single call, and its answer equals the lost answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/call_id.h"
#include "jobq/holder.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "testkit/forwarding_storage.h"
#include "testkit/same_answers.h"
#include "testkit/storage_suite.h"

namespace jobq::testkit {

inline bool isSame(const Duplicate& one, const Duplicate& other) { return one.id == other.id; }
inline bool isSame(const Cancelled& one, const Cancelled& other) { return one.lease == other.lease; }
inline bool isSame(const Stored& one, const Stored& other) { return one.version == other.version; }
inline bool isSame(const NameTaken& one, const NameTaken& other) { return one.byId == other.byId; }
inline bool isSame(const WrongState& one, const WrongState& other) { return one.state == other.state; }
/// Compares answers without content.
template <class Answer>
bool isSame(const Answer&, const Answer&) {
  return true;
}

/// Compares two variants with their content.
inline constexpr auto kSame = [](const auto& one, const auto& other) {
  if (one.index() != other.index()) return false;
  return std::visit([&](const auto& answer) { return isSame(answer, std::get<std::decay_t<decltype(answer)>>(other)); },
                    one);
};

/// Makes a call twice, compares the answers, and returns the second answer. `isSame` compares two answers.
template <class Call, class Same = std::equal_to<>>
auto callTwice(const char* operation, Call&& call, Same&& isSame = {}) {
  const auto lost = call();
  auto answer = call();
  EXPECT_TRUE(isSame(lost, answer)) << "the repeated call of " << operation << " has a different answer";
  return answer;
}

/// Calls each operation twice whose repeated call has no further effect.
class JobsWithLostAnswers final : public ForwardingJobs {
 public:
  using ForwardingJobs::ForwardingJobs;

  InsertResult insert(JobSpec&& job, const QueuePolicy& policy, const InsertTerms& terms) override {
    if (std::holds_alternative<Begun>(terms.start)) throwLacking("JobStore::insert() with Begun");
    return callTwice(
        "insert", [&] { return inner_.insert(JobSpec(job), policy, terms); }, kSame);
  }
  void insertLater(JobSpec, const QueuePolicy&, std::optional<Idempotency>, std::unique_ptr<InsertReceiver>) override {
    throwLacking("JobStore::insertLater()");
  }
  CancelResult cancel(const JobKey& key) override {
    return callTwice(
        "cancel", [&] { return inner_.cancel(key); }, kSame);
  }
  RequeueResult requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) override {
    return callTwice(
        "requeue", [&] { return inner_.requeue(key, failedAttempt, policy); }, kSame);
  }
  std::size_t purgeQueued(std::string_view endpoint) override {
    const std::size_t lost = inner_.purgeQueued(endpoint);
    return lost + inner_.purgeQueued(endpoint);
  }
  std::optional<Instant> setTtl(const JobKey& key, Millis ttl) override {
    return callTwice("setTtl", [&] { return inner_.setTtl(key, ttl); });
  }
};

/// Calls each operation twice whose repeated call has no further effect.
class LeasesWithLostAnswers final : public ForwardingLeases {
 public:
  /// Both outlive the object. `jobs` tells which attempts have ended.
  LeasesWithLostAnswers(LeaseStore& inner, JobStore& jobs) : ForwardingLeases(inner), jobs_(jobs) {}

  /// Loses the answer of the claim, and asks for the jobs. Another thread may end an attempt in between.
  ClaimResult claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id,
                    std::uint64_t mostBytes) override {
    ClaimResult lost = inner_.claim(wants, holder, id, mostBytes);
    return {askFor(lost.jobs, wants, id), lost.left};
  }
  using LeaseStore::finish;
  FinishResult finish(std::span<const EndedAttempt> ends, Durability durability,
                      const std::optional<FusedClaim>& claim) override {
    if (claim || durability == Durability::unsynced)
      throwLacking("LeaseStore::finish() with a claim or without a sync");
    return {callTwice("finish", [&] { return inner_.finish(ends, durability, claim).reports; }), {}};
  }
  ReportResult progress(const LeaseRef& lease, std::string json) override {
    return callTwice("progress", [&] { return inner_.progress(lease, json); });
  }
  /// Returns the lists of the first call, since the repeated call names no job.
  SweepResult giveBack(std::span<const ReturnedJob> jobs) override {
    SweepResult lost = inner_.giveBack(jobs);
    const SweepResult again = inner_.giveBack(jobs);
    EXPECT_TRUE(again.stopped.empty() && again.finished.empty() && again.requeuedAt.empty())
        << "the repeated call of giveBack names a job";
    return lost;
  }

 private:
  /// Returns the jobs of a claim whose answer is lost.
  std::vector<ClaimedJob> askFor(const std::vector<ClaimedJob>& lost, std::span<const ClaimWant> wants, CallId id) {
    std::vector<ClaimedJob> jobs = inner_.claimed(wants, id);
    auto answered = jobs.begin();
    for (const ClaimedJob& job : lost) {
      if (answered != jobs.end() && isSameClaim(job, *answered)) {
        ++answered;
      } else {
        EXPECT_FALSE(isRunning(job)) << "claimed() leaves out the job " << job.lease.job;
      }
    }
    EXPECT_EQ(answered, jobs.end()) << "claimed() returns a job of a different claim";
    return jobs;
  }

  /// Returns whether the attempt of a claim still runs.
  bool isRunning(const ClaimedJob& claimed) {
    const auto job = jobs_.find({claimed.endpoint, claimed.lease.job});
    return job && job->state == JobState::inProgress && job->attempt == claimed.lease.attempt;
  }

  JobStore& jobs_;
};

/// Calls each operation twice whose repeated call has no further effect.
class ChunksWithLostAnswers final : public ForwardingChunks {
 public:
  using ForwardingChunks::ForwardingChunks;

  ReportResult append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) override {
    return callTwice("append", [&] { return inner_.append(lease, first, chunks); });
  }
  /// Keeps other calls out in between: the store returns the chunks of the last call only.
  std::optional<ChunkPage> consume(const JobKey& key, std::size_t maxBytes, CallId id) override {
    const std::lock_guard lock(consuming_);
    const auto lost = inner_.consume(key, maxBytes, id);
    auto page = inner_.consume(key, maxBytes, id);
    if (lost && page && !lost->chunks.empty() && lost->attempt == page->attempt) {
      EXPECT_TRUE(isSamePage(*lost, *page)) << "the repeated call of consume returns other chunks";
    }
    return page;
  }
  ReportResult appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) override {
    return callTwice("appendLog", [&] { return inner_.appendLog(lease, first, lines); });
  }

 private:
  std::mutex consuming_;
};

/// Calls each operation twice whose repeated call has no further effect.
class OutboxWithLostAnswers final : public ForwardingOutbox {
 public:
  using ForwardingOutbox::ForwardingOutbox;

  bool finishDelivery(const DeliveryClaim& claim, DeliveryState state) override {
    return callTwice("finishDelivery", [&] { return inner_.finishDelivery(claim, state); });
  }
  bool reschedule(const DeliveryClaim& claim, Millis delay) override {
    return callTwice("reschedule", [&] { return inner_.reschedule(claim, delay); });
  }
  bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) override {
    return callTwice("recordAttempt", [&] { return inner_.recordAttempt(claim, number, attempt); });
  }
};

/// Makes each change twice, with one id.
class RecordsWithLostAnswers final : public ForwardingRecords {
 public:
  using ForwardingRecords::ForwardingRecords;

  CreateResult create(Record record) override {
    const std::lock_guard lock(changing_);
    giveId(record);
    return callTwice(
        "create", [&] { return inner_.create(record); }, kSame);
  }
  UpdateResult update(Record record, std::uint64_t expectedVersion) override {
    const std::lock_guard lock(changing_);
    giveId(record);
    return callTwice(
        "update", [&] { return inner_.update(record, expectedVersion); }, kSame);
  }
  bool remove(std::string_view kind, std::string_view id) override {
    const std::lock_guard lock(changing_);
    const bool lost = inner_.remove(kind, id);
    EXPECT_FALSE(inner_.remove(kind, id)) << "the record is removed";
    return lost;
  }

 private:
  void giveId(Record& record) {
    if (record.change == 0) record.change = ++lastChange_;
  }

  std::mutex changing_;  // a further change in between would take the place of the lost one
  CallId lastChange_ = (static_cast<CallId>(std::random_device()()) << 32U) + 1;
};

/// Calls each operation twice that is repeatable.
class NodesWithLostAnswers final : public ForwardingNodes {
 public:
  using ForwardingNodes::ForwardingNodes;

  Holder join(std::string_view name, const std::optional<JobKey>& culprit) override {
    const Holder lost = inner_.join(name, culprit);
    const Holder holder = inner_.join(name, culprit);
    EXPECT_GT(holder.epoch, lost.epoch);
    return holder;
  }
  BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override {
    return callTwice("beat", [&] { return inner_.beat(holder, workers); });
  }
  void leave(const Holder& holder) override {
    inner_.leave(holder);
    inner_.leave(holder);
  }
};

/// The storage `inner` with lost answers. The thread rules of `inner` apply.
class StorageWithLostAnswers final : public ForwardingStorage {
 public:
  explicit StorageWithLostAnswers(std::unique_ptr<Storage> inner)
      : ForwardingStorage(*inner),
        owned_(std::move(inner)),
        jobs_(inner_.jobs()),
        leases_(inner_.leases(), inner_.jobs()),
        chunks_(inner_.chunks()),
        outbox_(inner_.outbox()),
        nodes_(inner_.nodes()),
        records_(inner_.records()) {}

  JobStore& jobs() override { return jobs_; }
  LeaseStore& leases() override { return leases_; }
  ChunkStore& chunks() override { return chunks_; }
  OutboxStore& outbox() override { return outbox_; }
  NodeStore& nodes() override { return nodes_; }
  RecordStore& records() override { return records_; }
  InsertedAndClaimed insertAndClaim(JobSpec&&, const QueuePolicy&, const std::optional<Idempotency>&,
                                    const FusedClaim&) override {
    throwLacking("Storage::insertAndClaim()");
  }

 private:
  const std::unique_ptr<Storage> owned_;
  JobsWithLostAnswers jobs_;
  LeasesWithLostAnswers leases_;
  ChunksWithLostAnswers chunks_;
  OutboxWithLostAnswers outbox_;
  NodesWithLostAnswers nodes_;
  RecordsWithLostAnswers records_;
};

/// Returns the storage under test behind a connection that loses answers.
inline StorageUnderTest withLostAnswers(const StorageUnderTest& under) {
  StorageUnderTest behind = under;
  behind.name += "_lost_answers";
  behind.open = [open = under.open](Clock& clock, const std::filesystem::path& folder) {
    return std::make_unique<StorageWithLostAnswers>(open(clock, folder));
  };
  return behind;
}

}  // namespace jobq::testkit
