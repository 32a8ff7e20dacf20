#include "random_operations.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <random>

#include "later_insert.h"
#include "random_leases.h"
#include "testkit/outbox_access.h"
#include "testkit/returned_jobs.h"

namespace jobq::model {
namespace {

struct Kind {
  Action action;
  const char* name;
  int weight;
};
constexpr std::array kKinds{
    Kind{Action::insert, "insert", 24},
    Kind{Action::insertAndClaim, "insertAndClaim", 12},
    Kind{Action::insertBegun, "insertBegun", 10},
    Kind{Action::claim, "claim", 18},
    Kind{Action::finish, "finish", 16},
    Kind{Action::fail, "fail", 8},
    Kind{Action::progress, "progress", 3},
    Kind{Action::append, "append", 5},
    Kind{Action::log, "log", 3},
    Kind{Action::release, "release", 4},
    Kind{Action::lose, "lose", 5},
    Kind{Action::states, "states", 4},
    Kind{Action::cancel, "cancel", 5},
    Kind{Action::requeue, "requeue", 8},
    Kind{Action::find, "find", 3},
    Kind{Action::counts, "counts", 2},
    Kind{Action::list, "list", 2},
    Kind{Action::consume, "consume", 4},
    Kind{Action::read, "read", 2},
    Kind{Action::setTtl, "setTtl", 3},
    Kind{Action::finishDelivery, "finishDelivery", 4},
    Kind{Action::reschedule, "reschedule", 2},
    Kind{Action::recordAttempt, "attempt", 2},
    Kind{Action::replay, "replay", 2},
    Kind{Action::deliveries, "deliveries", 1},
    Kind{Action::advance, "advance", 8},
    Kind{Action::purge, "purge", 1},
    Kind{Action::createRecord, "createRecord", 6},
    Kind{Action::updateRecord, "updateRecord", 6},
    Kind{Action::removeRecord, "removeRecord", 3},
    Kind{Action::findRecord, "findRecord", 1},
    Kind{Action::listRecords, "listRecords", 1},
    Kind{Action::changedSince, "changedSince", 5},
    Kind{Action::sweep, "sweep", 8},
    Kind{Action::claimDue, "claimDue", 4},
    Kind{Action::abandonOwed, "abandonOwed", 4},
    Kind{Action::remove, "remove", 1},
    Kind{Action::join, "join", 4},
};
static_assert(kKinds.size() == kActions);

// Mostly short times, now and then long enough for the end of leases, retention or a ttl.
constexpr std::array kJumps{1, 40, 700, 4'000, 11'000, 61'000, 700'000, 2'000'000, 90'000'000};

/// Returns the life of the node; begins a life if there is none. An older life claims no job.
Holder presentLife(NodeStore& nodes) {
  for (const NodeInfo& node : nodes.nodes()) {
    if (node.isAlive) return {node.name, node.epoch};
  }
  return nodes.join("node");
}

constexpr std::array kListed{JobState::inQueue, JobState::inProgress, JobState::completed,
                             JobState::failed,  JobState::cancelled,  JobState::timedOut};

/// Few hosts, so each host has several calls.
std::string host(std::uint32_t number) { return "h" + std::to_string(number % 3) + ".example.com"; }

}  // namespace

std::string text(const Operation& operation) {
  return std::string(kKinds[static_cast<std::size_t>(operation.action)].name) + " " + std::to_string(operation.a) +
         " " + std::to_string(operation.b);
}

std::vector<Operation> randomOperations(std::uint64_t seed, std::size_t count, int actions) {
  std::mt19937_64 random(seed);
  std::vector<Action> bag;
  for (const Kind& kind : kKinds) {
    const int weight = static_cast<int>(kind.action) < actions ? kind.weight : 0;
    bag.insert(bag.end(), static_cast<std::size_t>(weight), kind.action);
  }
  std::vector<Operation> operations;
  const auto number = [&random] { return static_cast<std::uint32_t>(random() >> 40); };
  for (std::size_t i = 0; i < count; ++i) operations.push_back({bag[random() % bag.size()], number(), number()});
  return operations;
}

JobSpec Player::spec(std::uint32_t number, std::uint32_t kind) {
  JobSpec job;
  job.id = name_ + "-" + std::to_string(jobs_.size());
  job.endpoint = endpoint(number);
  job.apiKeyId = kind % 3 == 0 ? "" : "key" + std::to_string(kind % 3);
  const std::size_t filler = kind % 17 == 0    ? 20'000
                             : kind % 401 == 0 ? 1'100'000
                             : kind % 19 == 0  ? kLargeFiller
                                               : kind % 90;
  job.input = "{\"n\":" + std::to_string(number) + ",\"x\":\"" + std::string(filler, 'x') + "\"}";
  if (kind % 4 == 0) job.webhook = "http://" + host(number) + "/" + std::to_string(number);
  if (kind % 5 == 0) job.s3Config = "sealed" + std::to_string(number);
  job.policy.lowPriority = kind % 6 == 0;
  job.policy.executionTimeout = Millis(kind % 2 == 0 ? 600'000 : 5'000);
  job.policy.ttl = Millis(kind % 7 == 0 ? 10'000 : 86'400'000);
  job.retention = Millis(kind % 3 == 0 ? 60'000 : 1'800'000);
  job.maxAttempts = 1 + kind % 3;
  if (kind % 8 < 3) job.retentionFailed = Millis(kind % 8 == 0 ? 5'000 : 172'800'000);
  return job;
}

void Player::claim(Storage& storage, const Operation& operation) {
  std::vector<ClaimWant> wants;
  for (std::uint32_t i = 0; i < 1 + operation.b % 2; ++i) {
    ClaimWant want{endpoint(operation.a + i), {}};
    for (std::uint32_t k = 0; k <= operation.a % 3; ++k) want.workers.push_back("w" + std::to_string(k));
    wants.push_back(std::move(want));
  }
  const auto jobs = claimJobs(storage.leases(), wants, presentLife(storage.nodes()), ++lastClaim_, operation);
  for (const ClaimedJob& job : jobs) leases_.push_back(job.lease);
  // The claim before the current claim: some attempts have ended.
  if (operation.b % 3 == 0) (void)storage.leases().claimed(wants, operation.b % 2 == 0 ? lastClaim_ : lastClaim_ - 1);
}

void Player::insert(Storage& storage, const Operation& operation) {
  if (operation.a % 3 == 0) repeatInsert(storage);
  JobSpec job = spec(operation.a, operation.b);
  std::optional<Idempotency> once;
  if (operation.b % 11 == 0) {
    once = Idempotency{"once" + std::to_string(operation.a % 3), operation.b % 5 == 0 ? "other body" : "body"};
    (void)storage.jobs().findByIdempotencyKey(job.endpoint, job.apiKeyId, *once);
  }
  jobs_.push_back({job.endpoint, job.id});
  lastSubmission_ = Submission{job, once};
  if (operation.action == Action::insertBegun && storage.capabilities().has(Capability::insertBegun)) {
    insertBegun(storage, job, policy_, presentLife(storage.nodes()), operation);
    leases_.push_back({job.id, 1});
  } else if (operation.action == Action::insertAndClaim && insertAndClaim(storage, operation, job, once)) {
    // The step of the storage was both.
  } else if (operation.a % 2 == 0 && storage.capabilities().has(Capability::insertLater)) {
    (void)insertLaterAndWait(storage, job, policy_, once);
  } else {
    (void)storage.jobs().insert(std::move(job), policy_, {once});
  }
  if (operation.a % 5 == 0) repeatInsert(storage);
}

bool Player::insertAndClaim(Storage& storage, const Operation& operation, const JobSpec& job,
                            const std::optional<Idempotency>& once) {
  FusedClaim claim{{job.endpoint, {}}, presentLife(storage.nodes()), ++lastClaim_};
  if (!storage.capabilities().has(Capability::insertAndClaim)) return false;
  for (std::uint32_t k = 0; k <= operation.b % 3; ++k) claim.want.workers.push_back("w" + std::to_string(k));
  const auto done = storage.insertAndClaim(JobSpec(job), policy_, once, claim);
  for (const ClaimedJob& claimed : done.claimed) leases_.push_back(claimed.lease);
  return true;
}

void Player::repeatInsert(Storage& storage) {
  if (!lastSubmission_ || !storage.jobs().find({lastSubmission_->job.endpoint, lastSubmission_->job.id})) return;
  (void)storage.jobs().insert(JobSpec(lastSubmission_->job), policy_, {lastSubmission_->idempotency});
}

void Player::finish(Storage& storage, const LeaseRef& lease, const Outcome& outcome, const Operation& operation) {
  if (operation.b % 2 != 0 || !finishAndClaim(storage, lease, outcome, operation.b % 4 == 0)) {
    (void)storage.leases().finish(lease, outcome);
  } else {
    showEnd(storage, jobs_, lease.job, operation.a);
  }
  const std::vector<EndedAttempt> ends{{lease, outcome}, {leases_.empty() ? kNobodys : leases_.back(), outcome}};
  if (operation.a % 3 == 0) (void)storage.leases().finish(ends, Durability::synced, std::nullopt);
}

bool Player::finishAndClaim(Storage& storage, const LeaseRef& lease, const Outcome& outcome, bool needsSync) {
  const auto job = std::find_if(jobs_.begin(), jobs_.end(), [&](const JobKey& key) { return key.id == lease.job; });
  const ClaimWant want{job == jobs_.end() ? endpoint(0) : job->endpoint, {"w0"}};
  const FusedClaim claim{want, presentLife(storage.nodes()), ++lastClaim_};
  if (!storage.capabilities().has(Capability::finishAndClaim)) return false;
  const bool isUnsynced = !needsSync && storage.capabilities().has(Capability::finishUnsynced);
  const EndedAttempt end{lease, outcome};
  const auto done = storage.leases().finish({&end, 1}, isUnsynced ? Durability::unsynced : Durability::synced, claim);
  for (const ClaimedJob& claimed : done.claimed) leases_.push_back(claimed.lease);
  return true;
}

// The number of the first chunk is mostly the next one; otherwise the call repeats some chunks.
void Player::append(Storage& storage, const LeaseRef& lease, const Operation& operation) {
  std::uint64_t& next = nextChunks_[{lease.job, lease.attempt}];
  const std::uint64_t first = operation.a % 3 == 0 ? next - std::min<std::uint64_t>(next, operation.b % 4) : next;
  const std::size_t count = 1 + operation.b % 3;
  const Chunk chunk{std::to_string(operation.b), "{}", operation.b % 2 == 0};
  const ReportResult result = storage.chunks().append(lease, first, std::vector(count, chunk));
  if (result == ReportResult::accepted) next = std::max(next, first + count);
}

// The number of the first line is mostly the next one; otherwise the call repeats some lines.
void Player::appendLog(Storage& storage, const LeaseRef& lease, const Operation& operation) {
  std::uint64_t& next = nextLines_[lease.job];
  const std::uint64_t first = operation.a % 3 == 0 ? next - std::min<std::uint64_t>(next, operation.b % 3) : next;
  const LogLine line{{}, LogLevel::information, "line " + std::to_string(operation.b)};
  const std::vector<LogLine> lines(1 + operation.b % 2, line);
  const ReportResult result = storage.chunks().appendLog(lease, first, lines);
  if (result == ReportResult::accepted) next = std::max(next, first + lines.size());
}

void Player::playOnLease(Storage& storage, const Operation& operation) {
  // Mostly a recent lease, and thus mostly a held lease.
  const std::size_t back = operation.b % 4 == 0 ? operation.a % (leases_.size() + 1) : operation.a % 4;
  const LeaseRef lease = back < leases_.size() ? leases_[leases_.size() - 1 - back] : kNobodys;
  const std::string number = std::to_string(operation.b);
  const std::string filler(operation.b % 16 == 0 ? kLargeFiller : 0, ' ');
  switch (operation.action) {
    case Action::finish: finish(storage, lease, Completed{"{\"out\":" + number + filler + "}"}, operation); break;
    case Action::fail:
      finish(storage, lease, Failed{"no " + number, operation.b % 3 == 0 ? number + filler : ""}, operation);
      break;
    case Action::progress: (void)storage.leases().progress(lease, number); break;
    case Action::append: append(storage, lease, operation); break;
    case Action::log: appendLog(storage, lease, operation); break;
    case Action::release: testkit::release(storage.leases(), std::vector{lease, kNobodys}); break;
    case Action::lose: lose(storage.leases(), lease, leases_, operation); break;
    default: (void)storage.leases().states(std::vector{lease, kNobodys}); break;
  }
}

void Player::playOnJob(Storage& storage, const Operation& operation) {
  const JobKey key = jobs_.empty() || operation.b % 50 == 0 ? JobKey{endpoint(0), "nobody"}
                                                            : jobs_[jobs_.size() - 1 - operation.a % jobs_.size()];
  switch (operation.action) {
    case Action::cancel: (void)storage.jobs().cancel(key); break;
    case Action::requeue: {
      // The attempt is the last one in most cases.
      const auto job = storage.jobs().find(key);
      const std::uint32_t attempt = job ? job->attempt : 1;
      const std::uint32_t failed = operation.b % 7 == 0 ? operation.a % (attempt + 2) : attempt;
      (void)storage.jobs().requeue(key, failed, policy_);
      if (operation.a % 3 == 0) (void)storage.jobs().requeue(key, failed, policy_);  // as after a lost answer
      break;
    }
    case Action::find:
      readJob(storage.jobs(), key, operation.b);
      (void)storage.leases().ahead(key, 1 + operation.b % 9);
      break;
    case Action::consume:
      if (operation.a % 3 > 0) ++lastConsume_;  // otherwise the same call again, as after a lost answer
      (void)storage.chunks().consume(key, 1 + operation.b % 12, lastConsume_);
      break;
    case Action::read: (void)storage.chunks().read(key, operation.b % 4, 1 + operation.b % 12); break;
    default: storage.jobs().setTtl(key, Millis(operation.b % 3'000'000)); break;
  }
}

void Player::playOnEndpoint(Storage& storage, const Operation& operation) {
  const EndpointId id = endpoint(operation.a);
  if (operation.action == Action::counts) {
    (void)storage.jobs().counts(id);
  } else if (operation.action == Action::list) {
    std::optional<JobState> state;
    if (operation.a % 5 < 4) state = kListed[operation.b % kListed.size()];
    const JobFilter filter{id, state, operation.a % 4 == 0 ? "key1" : "", operation.b % 4 == 0 ? name_ + "-1" : ""};
    (void)storage.jobs().list(filter, {operation.b % 5, 1 + operation.b % 20});
  } else if (operation.action == Action::purge) {
    storage.jobs().purgeQueued(id);
  } else {
    storage.jobs().remove(id, 1'000'000);
  }
}

void Player::playOnDelivery(Storage& storage, const Operation& operation) {
  const std::size_t back = leases_.empty() ? 0 : operation.a % leases_.size();
  const LeaseRef of = leases_.empty() ? kNobodys : leases_[leases_.size() - 1 - back];
  const std::string id = of.job + "." + std::to_string(of.attempt);
  const std::size_t late = operation.a % (operation.b % 3 == 0 ? 9 : 2);  // mostly a delivery's last claim
  const DeliveryClaim claim = late < claims_.size() ? claims_[claims_.size() - 1 - late] : DeliveryClaim{id, 1};
  switch (operation.action) {
    case Action::finishDelivery: {
      const DeliveryState state = operation.b % 2 == 0 ? DeliveryState::delivered : DeliveryState::abandoned;
      storage.outbox().finishDelivery(claim, state);
      if (operation.a % 3 == 0) storage.outbox().finishDelivery(claim, state);  // as after a lost answer
      break;
    }
    case Action::reschedule: storage.outbox().reschedule(claim, Millis(operation.b % 20'000)); break;
    case Action::recordAttempt: {
      const DeliveryAttempt attempt{{}, 500, Millis(7), "refused", "sorry"};
      if (operation.b % 5 != 0) testkit::recordNext(storage.outbox(), claim, attempt);
      storage.outbox().recordAttempt(claim, operation.a % 4, attempt);  // the last number, the next, or another
      break;
    }
    default: storage.outbox().replay(operation.b % 2 == 0 ? claim.id : id); break;
  }
}

// Claims all deliveries of a host or none: the order among deliveries due at the same moment is the storage's choice.
void Player::claimDeliveries(OutboxStore& outbox, const Operation& operation) {
  const DueHosts page = outbox.dueHosts(operation.a % 3 == 0 ? host(operation.a / 3) : "", 1 + operation.b % 3);
  std::vector<HostPlaces> places;
  for (std::uint32_t i = 0; i < 3; ++i) {
    if ((operation.a >> i) % 2 == 0) places.push_back({host(i), (operation.b >> i) % 2 * 1'000});
  }
  for (const std::string& each : page.hosts) {
    const auto isNamed = [&](const HostPlaces& named) { return named.host == each; };
    if (std::none_of(places.begin(), places.end(), isNamed)) places.push_back({each, 1'000});
  }
  for (const Delivery& delivery : outbox.claimDue(places, Millis(15'000))) claims_.push_back(delivery.claim());
}

// A third of the changes has no id, and some calls repeat the last change, or have its id by mistake.
CallId Player::idOfChange(const Operation& operation) {
  if (operation.a % 3 == 0) return 0;
  return operation.b % 5 == 0 ? lastChange_ : ++lastChange_;
}

// Mostly expects the stored version.
void Player::updateRecord(RecordStore& records, Record record, std::uint32_t choice) {
  std::uint64_t expected = choice % 7;
  const auto found = records.find(record.kind, record.id);
  if (found) versions_.push_back(found->version);
  if (found && choice % 3 != 0) {
    expected = found->version;
  } else if (!versions_.empty()) {
    expected = versions_[choice % versions_.size()];
  }
  const auto result = records.update(std::move(record), expected);
  if (const auto* now = std::get_if<Stored>(&result)) versions_.push_back(now->version);
}

// Few kinds, ids and names, so records collide.
void Player::playOnRecord(RecordStore& records, const Operation& operation) {
  const std::string kind = name_ + "-kind" + std::to_string(operation.a % 2);
  const std::string id = "r" + std::to_string(operation.b % 4);
  const std::string name = operation.a % 5 == 0 ? "" : "n" + std::to_string(operation.a % 3);
  const std::string body = std::to_string(operation.b) + std::string(operation.b % 31 == 0 ? 30'000 : 0, 'x');
  if (operation.action == Action::createRecord) {
    const Record record{kind, id, name, body, 0, {}, idOfChange(operation)};
    const auto result = records.create(record);
    if (const auto* now = std::get_if<Stored>(&result)) versions_.push_back(now->version);
  } else if (operation.action == Action::updateRecord) {
    updateRecord(records, {kind, id, name, body, 0, {}, idOfChange(operation)}, operation.a);
  } else if (operation.action == Action::removeRecord) {
    records.remove(kind, id);
  } else if (operation.action == Action::findRecord) {
    (void)records.find(kind, id);
  } else if (operation.action == Action::listRecords) {
    (void)records.list(kind);
  } else {
    const std::vector<std::uint64_t>& known = operation.b % 3 == 0 ? versions_ : moments_;
    const std::size_t back = operation.a % (known.size() + 1);
    moments_.push_back(records.changedSince(kind, back == known.size() ? 0 : known[known.size() - 1 - back]).version);
  }
}

void Player::play(Storage& storage, const Operation& operation) {
  const Action action = operation.action;
  if (action == Action::advance) {
    clock_.advance(Millis(kJumps[operation.a % kJumps.size()]));
  } else if (action >= Action::insert && action <= Action::insertBegun) {
    insert(storage, operation);
  } else if (action == Action::claim) {
    claim(storage, operation);
  } else if (action == Action::join) {
    (void)storage.nodes().join("node");
  } else if (action >= Action::finish && action <= Action::states) {
    playOnLease(storage, operation);
  } else if (action == Action::counts || action == Action::list || action == Action::purge ||
             action == Action::remove) {
    playOnEndpoint(storage, operation);
  } else if (isOfRecords(action)) {
    playOnRecord(storage.records(), operation);
  } else if (action >= Action::finishDelivery && action <= Action::replay) {
    playOnDelivery(storage, operation);
  } else if (action == Action::deliveries) {
    const bool ofJob = operation.b % 2 == 0 && !jobs_.empty();
    const JobId job = ofJob ? jobs_[jobs_.size() - 1 - operation.a % jobs_.size()].id : "";
    (void)storage.outbox().list(ofJob && operation.b % 4 == 0 ? "" : endpoint(operation.a), job, 1'000);
    // Not over all endpoints: the ends of one sweep have no order between endpoints.
    (void)storage.outbox().list(endpoint(operation.a), "", 3, DeliveryState(operation.a % 3));
    (void)storage.outbox().owed(endpoint(operation.a));
  } else if (action == Action::sweep) {
    (void)storage.leases().sweep(1'000'000);
  } else if (action == Action::claimDue) {
    claimDeliveries(storage.outbox(), operation);
  } else if (action == Action::abandonOwed) {
    // All waiting deliveries or none: the oldest among deliveries owed by the same sweep is the storage's choice.
    const OwedBounds bounds{Millis(kJumps[operation.a % kJumps.size()]), operation.b % 4 == 0 ? 0U : 1'000'000U};
    (void)storage.outbox().abandonOwed(bounds, 1'000'000);
  } else {
    playOnJob(storage, operation);
  }
}

}  // namespace jobq::model
