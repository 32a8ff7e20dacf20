#include "core/workers/remote/remote_run.h"

#include <utility>

#include "core/base/secret_box.h"
#include "core/jobs/run_reports.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

/// Bytes in the text of a job beyond the names and the batch.
constexpr std::size_t kTextFrame = 128;

}  // namespace

RemoteRun::RemoteRun(const Deps& deps, ClaimedJob job)
    : AttemptReports(deps.reports, deps.storage, job.endpoint, job.lease, !job.webhook.empty()),
      deps_(deps),
      job_(std::move(job)),
      input_(deps.running.inputs().hold(job_.endpoint, job_.input.size())),
      deadline_(deps.clock.now() + job_.runsFor),
      entry_(deps.running, job_.lease),
      limit_(deps.deadlines, deadline_) {}

std::string RemoteRun::openS3Config() const {
  return job_.s3Config.empty() ? std::string() : deps_.secrets.open(job_.s3Config);
}

std::size_t RemoteRun::textSize() const noexcept {
  // A quoted character takes six bytes at most.
  return kTextFrame + job_.lease.job.size() + job_.input.size() + 6 * job_.webhook.size() + job_.s3Config.size();
}

void RemoteRun::moveText(std::string& to, std::string_view s3Config, std::string_view batch) {
  json::appendObject(to, [&](json::ObjectWriter& out) {
    out.member("id", job_.lease.job);
    out.raw("input", job_.input);
    if (!job_.webhook.empty()) out.member("webhook", job_.webhook);
    if (!s3Config.empty()) out.raw("s3Config", s3Config);
    if (!batch.empty()) out.member("batchId", batch);
  });
  std::string().swap(job_.input);  // an assignment would keep the memory
  input_.release();
}

// Returns false if the outcome of the run must not be reported.
bool RemoteRun::beginFinish() const {
  if (!entry_.beginReport()) return false;
  if (deps_.clock.now() >= deadline_) deps_.deadlines.endOverdue();
  return true;
}

ReportResult RemoteRun::finish(Outcome outcome) {
  if (!beginFinish()) return ReportResult::staleAttempt;
  return AttemptReports::finish(std::move(outcome));
}

void RemoteRun::finishAll(std::vector<EndedRun> ends) {
  std::vector<EndedAttempt> attempts;
  attempts.reserve(ends.size());
  bool oweWebhooks = false;
  for (EndedRun& end : ends) {
    if (!end.run->beginFinish()) continue;
    attempts.push_back({end.run->lease(), std::move(end.outcome)});
    oweWebhooks = oweWebhooks || !end.run->job_.webhook.empty();
  }
  if (!attempts.empty()) ends.front().run->deps_.reports.finishAll(std::move(attempts), oweWebhooks);
}

}  // namespace jobq
