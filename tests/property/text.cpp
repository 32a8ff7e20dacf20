#include "text.h"

#include <algorithm>
#include <sstream>

namespace jobq::model {
namespace {

// An error worded by the store is compared only for its presence.
std::string errorOf(const Job& job) {
  const bool worded = job.error.starts_with("its worker was lost") || job.state == JobState::timedOut;
  return worded && !job.error.empty() ? "*" : job.error;
}

std::string nameOf(DeliveryState state) {
  switch (state) {
    case DeliveryState::owed: return "owed";
    case DeliveryState::delivered: return "delivered";
    case DeliveryState::abandoned: return "abandoned";
  }
  return "?";
}

std::string nameOf(const LeaseRef& lease) { return lease.job + "#" + std::to_string(lease.attempt); }

std::string nameOf(const DeliveryAttempt& attempt) {
  return model::text(attempt.at) + " " + std::to_string(attempt.status) + " " +
         (attempt.reason ? "failed: " + *attempt.reason : "delivered") + " " + attempt.reply;
}

}  // namespace

std::string text(bool answer) { return answer ? "yes" : "no"; }
std::string text(std::size_t count) { return std::to_string(count); }
std::string text(ReportResult fenced) { return fenced == ReportResult::accepted ? "accepted" : "stale"; }
std::string text(Instant instant) { return "@" + std::to_string(toEpochMillis(instant) % 1'000'000'000); }

std::string text(LeaseState state) {
  switch (state) {
    case LeaseState::held: return "held";
    case LeaseState::cancelled: return "cancelled";
    case LeaseState::timedOut: return "timed out";
    case LeaseState::deleted: return "deleted";
    case LeaseState::takenOver: return "taken over";
  }
  return "?";
}

std::string text(const Job& job) {
  std::ostringstream out;
  out << job.endpoint << '/' << job.id << ' ' << jobq::nameOf(job.state) << " attempt " << job.attempt << " losses "
      << job.losses << " retries " << job.retries << (job.lowPriority ? " low" : "") << " submitted "
      << text(job.submittedAt) << " queued " << text(job.queuedAt) << " started " << text(job.startedAt) << " finished "
      << text(job.finishedAt) << " expires " << text(job.expiresAt) << " worker '" << job.workerId << "' output '"
      << job.output << "' progress '" << job.progress << "' error '" << errorOf(job) << "' bytes " << job.bodyBytes
      << " key '" << job.apiKeyId << "' input '" << job.input << '\'';
  return out.str();
}

std::string text(const InsertResult& result) {
  if (const auto* existing = std::get_if<Duplicate>(&result)) return "existing " + existing->id;
  return std::holds_alternative<Inserted>(result) ? "inserted" : "other body";
}

std::string text(const IdempotencyRecord& answer) {
  const auto* existing = std::get_if<Duplicate>(&answer);
  return existing != nullptr ? "existing " + existing->id : "other body";
}

std::string text(const CancelResult& result) {
  if (const auto* wrong = std::get_if<WrongState>(&result)) return "is " + std::string(jobq::nameOf(wrong->state));
  if (std::holds_alternative<NotFound>(result)) return "absent";
  return "cancelled " + nameOf(std::get<Cancelled>(result).lease);
}

std::string text(const RequeueResult& result) {
  if (const auto* wrong = std::get_if<WrongState>(&result)) return "is " + std::string(jobq::nameOf(wrong->state));
  return std::holds_alternative<NotFound>(result) ? "absent" : "requeued";
}

std::string text(const JobPage& page) { return std::to_string(page.total) + ": " + text(page.jobs); }

std::string text(const EndpointCounts& counts) {
  std::ostringstream out;
  out << "inQueue " << counts.inQueue << " low " << counts.inQueueLow << " inProgress " << counts.inProgress
      << " completed " << counts.completed << " failed " << counts.failed << " retried " << counts.retried;
  if (counts.headWait) out << " head " << counts.headWait->count();
  return out.str();
}

std::string text(const InsertedAndClaimed& done) { return text(done.inserted) + " " + text(done.claimed); }

std::string text(const FinishResult& done) { return text(done.reports) + " " + text(done.claimed); }

std::string text(const ClaimedJob& job) {
  return job.endpoint + "/" + nameOf(job.lease) + " by " + job.worker + " since " + text(job.startedAt) + " for " +
         std::to_string(job.runsFor.count()) + " submitted " + text(job.submittedAt) + " input " + job.input +
         " webhook '" + job.webhook + "' s3 '" + job.s3Config + "' timeout " +
         std::to_string(job.policy.executionTimeout.count()) + " lines " + std::to_string(job.logLines);
}

std::string text(const ClaimResult& claim) {
  std::string whole = text(claim.jobs);
  for (const EndpointId& endpoint : claim.left) whole += " and others left at " + endpoint;
  return whole;
}

std::string text(SweepResult swept) {
  std::vector<std::string> stopped;
  for (const LeaseRef& lease : swept.stopped) stopped.push_back(nameOf(lease));
  std::vector<std::string> finished;
  for (const JobKey& key : swept.finished) finished.push_back(key.endpoint + "/" + key.id);
  std::sort(stopped.begin(), stopped.end());
  std::sort(finished.begin(), finished.end());
  std::sort(swept.requeuedAt.begin(), swept.requeuedAt.end());
  std::string out = "removed " + std::to_string(swept.removed) + " stopped";
  for (const auto& each : stopped) out += " " + each;
  out += " finished";
  for (const auto& each : finished) out += " " + each;
  out += " requeued at";
  for (const auto& each : swept.requeuedAt) out += " " + each;
  return out;
}

std::string text(const Chunk& chunk) { return chunk.output + "|" + chunk.metrics + (chunk.partial ? "|partial" : ""); }

std::string text(const ChunkPage& page) {
  return text(page.chunks) + " next " + std::to_string(page.next) + (page.more ? " more" : "") + " of " +
         std::string(jobq::nameOf(page.state)) + "#" + std::to_string(page.attempt);
}

std::string text(const LogLine& line) { return text(line.at) + " " + line.text; }

std::string text(const LogPart& part) { return text(part.lines) + (part.more ? " and more" : ""); }

std::string text(const Delivery& delivery) {
  std::string out = delivery.id + " " + nameOf(delivery.state) + " to " + delivery.url + " at " + delivery.host +
                    " due " + text(delivery.dueAt) + " tries " + std::to_string(delivery.tries) + " claims " +
                    std::to_string(delivery.claims) + " input " + delivery.input + " job (" + text(delivery.job) + ")";
  for (const DeliveryAttempt& attempt : delivery.attempts) out += " try " + nameOf(attempt);
  return out;
}

std::string text(const DueHosts& page) {
  std::string out = "hosts";
  for (const std::string& host : page.hosts) out += " " + host;
  return out + " next " + page.next;
}

std::string text(const OwedDeliveries& owed) {
  return std::to_string(owed.count) + " for " + std::to_string(owed.oldestAge.count()) + " ms";
}

std::string text(const AbandonResult& result) {
  std::string out = "abandoned";
  for (const AbandonedDeliveries& of : result.endpoints) {
    out += " " + of.endpoint + " " + std::to_string(of.tooOld) + "+" + std::to_string(of.tooMany);
  }
  return out;
}

std::string text(const std::vector<Delivery>& deliveries) {
  std::vector<std::string> texts;
  for (const Delivery& delivery : deliveries) texts.push_back("[" + text(delivery) + "]");
  std::sort(texts.begin(), texts.end());
  std::string all;
  for (const std::string& each : texts) all += each;
  return all;
}

std::string text(const Record& record) {
  return record.kind + "/" + record.id + " '" + record.name + "' version " + std::to_string(record.version) + " " +
         text(record.changedAt) + " change " + std::to_string(record.change) + " " + record.body;
}

std::string text(const CreateResult& result) {
  if (const auto* taken = std::get_if<NameTaken>(&result)) return "taken by " + taken->byId;
  return "stored " + std::to_string(std::get<Stored>(result).version);
}

std::string text(const UpdateResult& result) {
  if (const auto* taken = std::get_if<NameTaken>(&result)) return "taken by " + taken->byId;
  if (const auto* now = std::get_if<Stored>(&result)) return "stored " + std::to_string(now->version);
  return std::holds_alternative<Conflict>(result) ? "conflict" : "no record";
}

std::string text(Changes changes) {
  std::sort(changes.removed.begin(), changes.removed.end());
  std::string out = text(changes.changed) + " removed";
  for (const std::string& id : changes.removed) out += " " + id;
  return out + " at " + std::to_string(changes.version);
}

}  // namespace jobq::model
