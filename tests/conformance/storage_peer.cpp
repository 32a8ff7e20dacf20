#include "storage_peer.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <optional>
#include <utility>
#include <variant>

#include "jobq/error.h"
#include "testkit/outbox_access.h"
#include "testkit/returned_jobs.h"

namespace jobq::test {
namespace {

using namespace jobq::testkit;

constexpr int kQuota = 24;  // jobs that a process submits
constexpr Millis kDeliveryLease{1'000};
constexpr std::uint32_t kManyAttempts = 1'000;
constexpr const char* kWebhook = "http://receiver.example/hook";

std::string textOf(const LeaseRef& lease) { return lease.job + " " + std::to_string(lease.attempt); }

}  // namespace

PeerTools::PeerTools(PeerPlan planned, Storage& opened)
    : plan(std::move(planned)),
      storage(opened),
      random_(plan.seed),
      log_(::open(plan.log.c_str(), O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600)) {}

void PeerTools::say(const std::string& fact) const {
  const std::string line = fact + "\n";
  if (::write(log_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) throw Error("the log is full");
}

void PeerJobs::submit() {
  if (submitted_ == kQuota) return;
  const int number = submitted_++;
  JobSpec job;
  job.id = tools_.plan.life + std::to_string(number);
  job.endpoint = "ep";
  job.input = "{\"n\":" + std::to_string(number) + "}";
  job.maxAttempts = kManyAttempts;
  if (number % 3 == 0) job.webhook = kWebhook;
  std::optional<Idempotency> key;
  if (number < kSharedKeys) key = Idempotency{"key" + std::to_string(number), "hash"};
  const std::string id = job.id;
  const auto result = tools_.storage.jobs().insert(std::move(job), policy_, {key});
  const auto* const first = std::get_if<Duplicate>(&result);
  if (std::holds_alternative<KeyConflict>(result)) throw Error("one body in two hashes");
  if (key) tools_.say("key " + key->key + " " + (first != nullptr ? first->id : id));
  if (first == nullptr) tools_.say("insert " + id);
  known_.push_back(first != nullptr ? first->id : id);
}

void PeerJobs::claim() {
  if (running_.size() > 4) return;
  ClaimWant want{"ep", {}};
  for (unsigned i = 0; i <= tools_.random(3); ++i) want.workers.push_back(tools_.plan.life + "w" + std::to_string(i));
  for (const ClaimedJob& job :
       tools_.storage.leases().claim(std::vector{want}, tools_.holder, tools_.nextCall()).jobs) {
    tools_.say("claim " + textOf(job.lease));
    running_.push_back({job.lease, 0, job.logLines});
  }
}

void PeerJobs::report() {
  Run* const run = anyRun();
  if (run == nullptr) return;
  ReportResult result =
      tools_.storage.chunks().append(run->lease, run->chunks, {{"\"c\"", "{}", false}, {"\"d\"", "", false}});
  if (result == ReportResult::accepted) {
    run->chunks += 2;
    result = tools_.storage.leases().progress(run->lease, "{\"p\":1}");
  }
  if (result == ReportResult::accepted) {
    result = tools_.storage.chunks().appendLog(run->lease, run->lines++, {{{}, LogLevel::information, "line"}});
  }
  if (result == ReportResult::staleAttempt) drop(*run);
}

void PeerJobs::end() {
  Run* const run = anyRun();
  if (run == nullptr) return;
  const LeaseRef lease = run->lease;
  const unsigned how = tools_.random(8);
  if (how == 0) {
    if (testkit::release(tools_.storage.leases(), std::vector{lease}) == 1) tools_.say("release " + textOf(lease));
  } else {
    const Outcome outcome = how == 1 ? Outcome(Failed{"no", ""}) : Outcome(Completed{"\"" + textOf(lease) + "\""});
    if (tools_.storage.leases().finish(lease, outcome) == ReportResult::accepted) {
      tools_.say((how == 1 ? "fail " : "finish ") + textOf(lease));
      if (how == 1) failed_.push_back(lease);
    }
  }
  drop(*run);
}

void PeerJobs::cancel() {
  if (known_.empty() || tools_.random(4) != 0) return;
  const std::string id = anyKnown();
  const auto result = tools_.storage.jobs().cancel({"ep", id});
  if (std::holds_alternative<NotFound>(result)) throw Error(id + " is gone");
  if (const auto* done = std::get_if<Cancelled>(&result)) tools_.say("cancel " + textOf(done->lease));
}

void PeerJobs::retry() {
  if (failed_.empty()) return;
  const LeaseRef lease = failed_.back();
  failed_.pop_back();
  const auto result = tools_.storage.jobs().requeue({"ep", lease.job}, lease.attempt, policy_);
  if (std::holds_alternative<NotFound>(result)) throw Error(lease.job + " is gone");
}

void PeerJobs::consume() {
  if (known_.empty()) return;
  const std::string id = anyKnown();
  const auto page = tools_.storage.chunks().consume({"ep", id}, 1, tools_.nextCall());
  if (!page) throw Error(id + " is gone");
  for (std::size_t i = 0; i < page->chunks.size(); ++i) {
    tools_.say("consume " + id + " " + std::to_string(page->attempt) + " " +
               std::to_string(page->next - page->chunks.size() + i));
  }
}

void PeerJobs::askEverything() {
  JobStore& jobs = tools_.storage.jobs();
  (void)jobs.counts("ep");
  (void)jobs.list({"ep", JobState::inQueue}, {0, 5, 0});
  (void)jobs.findByIdempotencyKey("ep", "", {"key1", "hash"});
  (void)tools_.storage.leases().queuedEndpoints();
  (void)tools_.storage.outbox().owed("ep");
  (void)tools_.storage.nodes().nodes();
  (void)tools_.storage.nodes().count("ep", tools_.plan.node);
  tools_.storage.check();
  if (known_.empty()) return;
  const JobKey key{"ep", anyKnown()};
  if (!jobs.find(key)) throw Error(key.id + " is gone");
  (void)jobs.summaries(std::vector{key});
  (void)jobs.setTtl(key, Millis(86'400'000));
  (void)tools_.storage.leases().ahead(key, 100);
  (void)tools_.storage.chunks().readLog(key);
  std::vector<LeaseRef> leases;
  for (const Run& run : running_) leases.push_back(run.lease);
  for (const LeaseState state : tools_.storage.leases().states(leases)) {
    if (state == LeaseState::deleted) throw Error("a job that runs here is gone");
  }
}

void PeerJobs::useOtherEndpoint() {
  JobSpec job;
  job.id = tools_.plan.life + "other" + std::to_string(++others_);
  job.endpoint = "other";
  job.input = "{}";
  job.maxAttempts = kManyAttempts;
  (void)tools_.storage.jobs().insert(std::move(job), policy_);
  if (others_ % 3 == 0) tools_.storage.jobs().purgeQueued("other");
}

bool PeerJobs::hasDoneItsPart() const { return submitted_ == kQuota && running_.empty() && failed_.empty(); }

void PeerRecords::createAdminKey() {
  const auto result = tools_.storage.records().create({"key", "admin", "admin", "{}", 0, {}, tools_.nextCall()});
  tools_.say(std::holds_alternative<Stored>(result) ? "admin stored" : "admin taken");
}

void PeerRecords::change() {
  RecordStore& records = tools_.storage.records();
  const std::string id = tools_.plan.life + "r" + std::to_string(tools_.random(3));
  const auto found = records.find("note", id);
  if (!found) {
    const auto made = records.create({"note", id, id, "{}", 0, {}, tools_.nextCall()});
    tools_.say("version " + std::to_string(std::get<Stored>(made).version));
  } else if (tools_.random(3) == 0) {
    if (!records.remove("note", id)) throw Error(id + " was removed by another process");
  } else {
    const auto stored = records.update({"note", id, id, "{\"u\":1}", 0, {}, tools_.nextCall()}, found->version);
    tools_.say("version " + std::to_string(std::get<Stored>(stored).version));
  }
  follow();
}

void PeerRecords::countUp() {
  RecordStore& records = tools_.storage.records();
  const auto found = records.find("count", "shared");
  if (!found) {
    if (std::holds_alternative<Stored>(records.create({"count", "shared", "", "1", 0, {}, tools_.nextCall()})))
      tools_.say("count");
    return;
  }
  const std::string body = std::to_string(std::stoi(found->body) + 1);
  const auto result = records.update({"count", "shared", "", body, 0, {}, tools_.nextCall()}, found->version);
  if (const auto* stored = std::get_if<Stored>(&result)) {
    tools_.say("count");
    tools_.say("version " + std::to_string(stored->version));
  }
}

// Versions become visible in order: a later answer has no change below the version of an earlier answer.
void PeerRecords::follow() {
  const Changes changes = tools_.storage.records().changedSince("note", followed_);
  std::uint64_t last = followed_;
  for (const Record& record : changes.changed) {
    if (record.version <= last) throw Error("version " + std::to_string(record.version) + " comes late");
    last = record.version;
  }
  followed_ = changes.version;
  const auto all = tools_.storage.records().changedSince("note", followed_);
  for (const Record& record : all.changed) {
    if (record.version <= followed_) throw Error("a change below the version of an answer");
  }
}

void Peer::work() {
  tools_.holder = storage_->nodes().join(tools_.plan.node);
  records_.createAdminKey();
  while (!isDone()) {
    doOneThing();
    keepAlive();
  }
}

void Peer::doOneThing() {
  switch (tools_.random(16)) {
    case 0:
    case 1: return jobs_.submit();
    case 2:
    case 3: return jobs_.claim();
    case 4:
    case 5: return jobs_.report();
    case 6:
    case 7: return jobs_.end();
    case 8: return jobs_.cancel();
    case 9: return jobs_.retry();
    case 10: return records_.change();
    case 11: return records_.countUp();
    case 12: return deliver();
    case 13: return jobs_.consume();
    case 14: return jobs_.useOtherEndpoint();
    default: return jobs_.askEverything();
  }
}

void Peer::deliver() {
  OutboxStore& outbox = tools_.storage.outbox();
  for (const Delivery& delivery : claimAllDue(outbox, kDeliveryLease)) {
    tools_.say("deliver " + delivery.id + " " + std::to_string(delivery.claims));
    if (!outbox.recordAttempt(delivery.claim(), delivery.tries + 1, {clock_.now(), 200, Millis(1), "", ""})) continue;
    if (outbox.finishDelivery(delivery.claim(), DeliveryState::delivered)) tools_.say("delivered " + delivery.id);
  }
}

// Only this node beats while time moves on, so the life of a dead node ends.
void Peer::keepAlive() {
  if (tools_.storage.nodes().beat(tools_.holder, {}) != BeatResult::extended)
    throw Error("the life of a living node has ended");
  if (isIdle_ || tools_.random(4) == 0) (void)tools_.storage.leases().sweep(100);
  if (!isIdle_ || secondsLeft() <= passed_) return;
  ++passed_;
  clock_.advance(Millis(1'000));
}

int Peer::secondsLeft() const {
  int seconds = 0;
  std::ifstream(tools_.plan.dead) >> seconds;
  return seconds;
}

bool Peer::isDone() {
  isIdle_ = false;
  if (!jobs_.hasDoneItsPart() || !std::filesystem::exists(tools_.plan.dead)) return false;
  const EndpointCounts counts = tools_.storage.jobs().counts("ep");
  const bool isWorkLeft = counts.inQueue > 0;
  isIdle_ = !isWorkLeft;
  return !isWorkLeft && counts.inProgress == 0 && tools_.storage.outbox().owed("ep").count == 0;
}

}  // namespace jobq::test
