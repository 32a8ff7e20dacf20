#include "faulty_storage.h"

#include <utility>

namespace jobq::fault {

namespace {

/// A call of the storage under way until the end of the object's life.
class CallUnderWay {
 public:
  explicit CallUnderWay(FaultPlan& plan) : plan_(plan) { plan_.countCall(1); }
  ~CallUnderWay() { plan_.countCall(-1); }
  CallUnderWay(const CallUnderWay&) = delete;
  CallUnderWay& operator=(const CallUnderWay&) = delete;

 private:
  FaultPlan& plan_;
};

/// A store in front of another store.
template <class Store>
class Before : public Store {
 public:
  Before(Store& inner, FaultPlan& plan) : plan_(plan), inner_(inner) {}

 protected:
  /// A call under way until the end of the expression.
  class CountedCall {
   public:
    CountedCall(FaultPlan& plan, Store& inner) : underWay_(plan), inner_(inner) {}
    Store* operator->() const { return &inner_; }

   private:
    const CallUnderWay underWay_;
    Store& inner_;
  };

  CountedCall at(const char* operation) {
    plan_.enter(operation);
    return CountedCall(plan_, inner_);
  }
  template <class Result>
  Result done(const char* operation, Result result) {
    plan_.leave(operation);
    return result;
  }

  FaultPlan& plan_;

 private:
  Store& inner_;
};

class Jobs final : public Before<JobStore> {
 public:
  using Before::Before;

  InsertResult insert(JobSpec&& job, const QueuePolicy& policy,
                      const std::optional<Idempotency>& idempotency) override {
    return done("jobs.insert", at("jobs.insert")->insert(JobSpec(job), policy, idempotency));
  }
  std::optional<IdempotencyRecord> findByIdempotencyKey(std::string_view endpoint, std::string_view apiKeyId,
                                                        const Idempotency& idempotency) override {
    return at("jobs.findByIdempotencyKey")->findByIdempotencyKey(endpoint, apiKeyId, idempotency);
  }
  std::optional<Job> find(const JobKey& key) override { return at("jobs.find")->find(key); }
  std::vector<std::optional<JobSummary>> summaries(std::span<const JobKey> keys) override {
    return at("jobs.summaries")->summaries(keys);
  }
  CancelResult cancel(const JobKey& key) override { return done("jobs.cancel", at("jobs.cancel")->cancel(key)); }
  RequeueResult requeue(const JobKey& key, std::uint32_t failedAttempt, const QueuePolicy& policy) override {
    return done("jobs.requeue", at("jobs.requeue")->requeue(key, failedAttempt, policy));
  }
  std::size_t purgeQueued(std::string_view endpoint) override { return at("jobs.purgeQueued")->purgeQueued(endpoint); }
  std::optional<Instant> setTtl(const JobKey& key, Millis ttl) override {
    return done("jobs.setTtl", at("jobs.setTtl")->setTtl(key, ttl));
  }
  JobPage list(const JobFilter& filter, const PageWindow& window) override {
    return at("jobs.list")->list(filter, window);
  }
  EndpointCounts counts(std::string_view endpoint) override {
    const CountedCall call = at("jobs.counts");
    EndpointCounts counts = call->counts(endpoint);
    plan_.leave("jobs.counts");
    return counts;
  }
  std::size_t remove(std::string_view endpoint, std::size_t batch) override {
    return done("jobs.remove", at("jobs.remove")->remove(endpoint, batch));
  }
};

class Leases final : public Before<LeaseStore> {
 public:
  using Before::Before;

  std::vector<ClaimedJob> claim(std::span<const ClaimWant> wants, const Holder& holder, CallId id) override {
    const CountedCall call = at("leases.claim");
    std::vector<ClaimedJob> jobs = call->claim(wants, holder, id);
    if (!jobs.empty()) plan_.leave("leases.claim");
    return jobs;
  }
  std::vector<ClaimedJob> claimed(std::span<const ClaimWant> wants, CallId id) override {
    return at("leases.claimed")->claimed(wants, id);
  }
  std::vector<LeaseState> states(std::span<const LeaseRef> leases) override {
    return at("leases.states")->states(leases);
  }
  std::vector<QueuedEndpoint> queuedEndpoints() override { return at("leases.queuedEndpoints")->queuedEndpoints(); }
  ReportResult finish(const LeaseRef& lease, Outcome outcome) override {
    return done("leases.finish", at("leases.finish")->finish(lease, std::move(outcome)));
  }
  ReportResult progress(const LeaseRef& lease, std::string json) override {
    return done("leases.progress", at("leases.progress")->progress(lease, std::move(json)));
  }
  std::size_t release(std::span<const LeaseRef> leases) override { return at("leases.release")->release(leases); }
  SweepResult sweep(std::size_t max) override {
    const CountedCall call = at("leases.sweep");
    SweepResult swept = call->sweep(max);
    if (!swept.stopped.empty() || !swept.finished.empty() || !swept.expired.empty() || !swept.requeuedAt.empty()) {
      plan_.leave("leases.sweep");
    }
    return swept;
  }
  std::optional<std::size_t> ahead(const JobKey& key, std::size_t most) override {
    return at("leases.ahead")->ahead(key, most);
  }

 private:
  std::vector<ClaimedJob> doAdopt(const Holder& holder) override { return at("leases.adopt")->adopt(holder); }
  SweepResult doLose(std::span<const LeaseRef> leases) override {
    const CountedCall call = at("leases.lose");
    SweepResult lost = call->lose(leases);
    if (!lost.stopped.empty()) plan_.leave("leases.lose");
    return lost;
  }
  std::vector<ReportResult> doFinishAll(std::span<const EndedAttempt> ends) override {
    return done("leases.finishAll", at("leases.finishAll")->finishAll(ends));
  }
};

class Chunks final : public Before<ChunkStore> {
 public:
  using Before::Before;

  ReportResult append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) override {
    return done("chunks.append", at("chunks.append")->append(lease, first, std::move(chunks)));
  }
  std::optional<ChunkPage> consume(const JobKey& key, std::size_t maxBytes, CallId id) override {
    const CountedCall call = at("chunks.consume");
    auto page = call->consume(key, maxBytes, id);
    if (page && !page->chunks.empty()) plan_.leave("chunks.consume");
    return page;
  }
  std::optional<ChunkPage> read(const JobKey& key, std::uint64_t offset, std::size_t maxBytes) override {
    return at("chunks.read")->read(key, offset, maxBytes);
  }
  ReportResult appendLog(const LeaseRef& lease, std::uint64_t first, std::vector<LogLine> lines) override {
    return done("chunks.appendLog", at("chunks.appendLog")->appendLog(lease, first, std::move(lines)));
  }
  std::optional<std::vector<LogLine>> readLog(const JobKey& key) override { return at("chunks.readLog")->readLog(key); }
};

class Outbox final : public Before<OutboxStore> {
 public:
  using Before::Before;

  DueHosts dueHosts(std::string_view after, std::size_t max) override {
    return at("outbox.dueHosts")->dueHosts(after, max);
  }
  std::vector<Delivery> claimDue(std::span<const HostPlaces> hosts, Millis lease) override {
    return at("outbox.claimDue")->claimDue(hosts, lease);
  }
  bool finishDelivery(const DeliveryClaim& claim, DeliveryState state) override {
    return done("outbox.finishDelivery", at("outbox.finishDelivery")->finishDelivery(claim, state));
  }
  bool reschedule(const DeliveryClaim& claim, Millis delay) override {
    return done("outbox.reschedule", at("outbox.reschedule")->reschedule(claim, delay));
  }
  bool recordAttempt(const DeliveryClaim& claim, std::uint32_t number, DeliveryAttempt attempt) override {
    return done("outbox.recordAttempt", at("outbox.recordAttempt")->recordAttempt(claim, number, std::move(attempt)));
  }
  std::vector<Delivery> list(std::string_view endpoint, std::string_view job, std::size_t limit) override {
    return at("outbox.list")->list(endpoint, job, limit);
  }
  bool replay(std::string_view id) override { return done("outbox.replay", at("outbox.replay")->replay(id)); }

 private:
  OwedDeliveries owed(std::string_view endpoint) override { return at("outbox.owed")->owed(endpoint); }
  AbandonResult abandonOwed(const OwedBounds& bounds, std::size_t max) override {
    return at("outbox.abandonOwed")->abandonOwed(bounds, max);
  }
};

class Nodes final : public Before<NodeStore> {
 public:
  using Before::Before;

  Holder join(std::string_view name) override { return done("nodes.join", at("nodes.join")->join(name)); }
  BeatResult beat(const Holder& holder, std::span<const EndpointWorkers> workers) override {
    return done("nodes.beat", at("nodes.beat")->beat(holder, workers));
  }
  void leave(const Holder& holder) override {
    at("nodes.leave")->leave(holder);
    plan_.leave("nodes.leave");
  }
  WorkerCounts count(std::string_view endpoint, std::string_view exceptNode) override {
    return at("nodes.count")->count(endpoint, exceptNode);
  }
  std::vector<NodeInfo> nodes() override { return at("nodes.nodes")->nodes(); }
};

class Records final : public Before<RecordStore> {
 public:
  using Before::Before;

  CreateResult create(Record record) override {
    return done("records.create", at("records.create")->create(std::move(record)));
  }
  UpdateResult update(Record record, std::uint64_t expectedVersion) override {
    return done("records.update", at("records.update")->update(std::move(record), expectedVersion));
  }
  std::optional<Record> find(std::string_view kind, std::string_view id) override {
    return done("records.find", at("records.find")->find(kind, id));
  }
  std::vector<Record> list(std::string_view kind) override {
    return done("records.list", at("records.list")->list(kind));
  }
  bool remove(std::string_view kind, std::string_view id) override {
    return done("records.remove", at("records.remove")->remove(kind, id));
  }
  Changes changedSince(std::string_view kind, std::uint64_t version) override {
    return done("records.changedSince", at("records.changedSince")->changedSince(kind, version));
  }
};

}  // namespace

FaultyStorage::FaultyStorage(std::unique_ptr<Storage> inner, FaultPlan& plan)
    : plan_(plan),
      inner_(std::move(inner)),
      jobs_(std::make_unique<Jobs>(inner_->jobs(), plan)),
      leases_(std::make_unique<Leases>(inner_->leases(), plan)),
      chunks_(std::make_unique<Chunks>(inner_->chunks(), plan)),
      outbox_(std::make_unique<Outbox>(inner_->outbox(), plan)),
      nodes_(std::make_unique<Nodes>(inner_->nodes(), plan)),
      records_(std::make_unique<Records>(inner_->records(), plan)) {}

void FaultyStorage::check() {
  plan_.enter("check");
  inner_->check();
}

void FaultyStorage::doInsertRun(const JobSpec& job, const QueuePolicy& policy, const FirstRun& run,
                                const Outcome* outcome) {
  plan_.enter("jobs.insertRun");
  const CallUnderWay call(plan_);
  inner_->insertRun(job, policy, run, outcome);
  plan_.leave("jobs.insertRun");
}

void FaultyStorage::doInsertLater(JobSpec&& job, const QueuePolicy& policy, std::optional<Idempotency>&& idempotency,
                                  std::unique_ptr<InsertReceiver> receiver) {
  try {
    plan_.enter("jobs.insertLater");
  } catch (const StorageError&) {
    return receiver->failed(std::current_exception());
  }
  inner_->insertLater(std::move(job), policy, std::move(idempotency), std::move(receiver));
}

}  // namespace jobq::fault
