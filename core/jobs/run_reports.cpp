#include "core/jobs/run_reports.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "core/base/words.h"
#include "core/jobs/completion_notifier.h"
#include "core/jobs/deferred_insert.h"
#include "core/jobs/queue_signal.h"
#include "core/jobs/returned_jobs.h"
#include "core/model/delivery_notifier.h"

namespace jobq {
namespace {

void limitError(Outcome& outcome) {
  auto* failed = std::get_if<Failed>(&outcome);
  if (failed == nullptr) return;
  const std::size_t size = failed->error.size();
  if (size == 0) failed->error = "the handler failed without a message";
  if (size > kMaxErrorBytes) {
    failed->error = clipped(failed->error, kMaxErrorBytes) + " (cut: the error had " + std::to_string(size) + " bytes)";
  }
}

}  // namespace

ReportResult RunReports::append(const LeaseRef& lease, std::uint64_t first, std::vector<Chunk> chunks) {
  std::size_t bytes = 0;
  for (const Chunk& chunk : chunks) bytes += chunk.output.size() + chunk.metrics.size();
  const ReportResult result = storage_.chunks().append(lease, first, std::move(chunks));
  if (result == ReportResult::accepted) completions_.announceChunk(lease.job, bytes);
  return result;
}

ReportResult RunReports::progress(const LeaseRef& lease, std::string json) {
  const ReportResult result = storage_.leases().progress(lease, std::move(json));
  if (result == ReportResult::accepted) completions_.announceChange(lease.job);
  return result;
}

ReportResult RunReports::appendLog(const LeaseRef& lease, std::uint64_t first, LogLine line) {
  const ReportResult result = storage_.chunks().appendLog(lease, first, {std::move(line)});
  if (result == ReportResult::accepted) completions_.announceChange(lease.job);
  return result;
}

ReportResult RunReports::finish(const LeaseRef& lease, Outcome outcome, bool owesWebhook) {
  limitError(outcome);
  const ReportResult result = storage_.leases().finish(lease, std::move(outcome));
  if (result == ReportResult::accepted) {
    completions_.announce(lease.job);
    if (owesWebhook) deliveries_.notify();
  }
  return result;
}

void RunReports::finishAll(std::vector<EndedAttempt> ends, bool oweWebhooks) {
  for (EndedAttempt& end : ends) limitError(end.outcome);
  const auto results = storage_.leases().finish(ends, Durability::synced, std::nullopt).reports;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (results.at(i) == ReportResult::accepted) completions_.announce(ends[i].lease.job);
  }
  if (oweWebhooks) deliveries_.notify();
}

EndedAttempt RunReports::endOf(const LeaseRef& lease, Outcome outcome) {
  limitError(outcome);
  return {lease, std::move(outcome)};
}

FinishedRun RunReports::finishAndClaim(const ClaimedJob& job, const EndedAttempt& end, DeferredInsert* insert) {
  if (insert != nullptr && insert->storeEnded(end.outcome)) return {};
  // A caller that begins to wait from here on reads the job, and the storage makes the end durable before.
  const bool isTold = !job.webhook.empty() || completions_.isAwaited(job.lease.job);
  if (const auto done = claimer_.finishAndClaim(job, end, isTold)) return *done;
  return {storage_.leases().finish({&end, 1}, Durability::synced, std::nullopt).reports.front()};
}

void RunReports::announceEnd(const ClaimedJob& job, bool answersHere) noexcept {
  if (answersHere) {
    completions_.announceHere(job.lease.job);
  } else {
    completions_.announce(job.lease.job);
  }
  if (!job.webhook.empty()) deliveries_.notify();
}

void RunReports::giveBack(std::span<const LeaseRef> leases, bool areLost) {
  giveBackAll(storage_.leases(), leases, areLost, [&](const SweepResult& returned) {
    if (areLost) return announce(returned);
    for (const EndpointId& endpoint : returned.requeuedAt) queueSignal_.notify(endpoint, false);
    for (const LeaseRef& lease : returned.stopped) completions_.announceChange(lease.job);
  });
}

void RunReports::announce(const SweepResult& swept) {
  for (const JobKey& key : swept.finished) completions_.announce(key.id);
  for (const JobKey& key : swept.expired) completions_.announce(key.id);
  for (const LeaseRef& lease : swept.stopped) completions_.announce(lease.job);
  for (const EndpointId& endpoint : swept.requeuedAt) queueSignal_.notify(endpoint, false);
  if (!swept.finished.empty()) deliveries_.notify();
}

void RunReports::announceAll() {
  completions_.announceAll();
  queueSignal_.notifyAll();
  deliveries_.notify();
}

}  // namespace jobq
