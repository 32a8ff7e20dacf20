#include "core/workers/remote_run.h"

#include <utility>
#include <vector>

#include "core/base/secret_box.h"
#include "core/jobs/run_reports.h"
#include "core/workers/chunk_split.h"
#include "jobq/json_writer.h"

namespace jobq {

RemoteRun::RemoteRun(const Deps& deps, ClaimedJob job)
    : deps_(deps),
      job_(std::move(job)),
      deadline_(deps.clock.now() + job_.runsFor),
      entry_(deps.running, job_.lease),
      limit_(deps.deadlines, deadline_) {}

std::string RemoteRun::extractText() {
  const std::string s3Config = job_.s3Config.empty() ? std::string() : deps_.secrets.open(job_.s3Config);
  std::string text = json::object([&](json::ObjectWriter& out) {
    out.member("id", job_.lease.job);
    out.raw("input", job_.input);
    if (!job_.webhook.empty()) out.member("webhook", job_.webhook);
    if (!s3Config.empty()) out.raw("s3Config", s3Config);
  });
  std::string().swap(job_.input);  // an assignment would keep the memory
  return text;
}

// Returns false if the outcome of the run must not be reported.
bool RemoteRun::beginFinish() const {
  if (!entry_.beginReport()) return false;
  if (deps_.clock.now() >= deadline_) deps_.deadlines.endOverdue();
  return true;
}

ReportResult RemoteRun::finish(Outcome outcome) {
  if (!beginFinish()) return ReportResult::staleAttempt;
  return deps_.reports.finish(job_.lease, std::move(outcome), !job_.webhook.empty());
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

ReportResult RemoteRun::addChunk(std::string_view output, std::string_view metrics) {
  Lock lock(mutex_);
  OutputQuota charged = outputQuota_;
  charged.charge(output, metrics);
  std::vector<Chunk> pieces = splitChunk(output, metrics);
  const std::size_t count = pieces.size();
  const ReportResult result = deps_.reports.append(job_.lease, nextChunk_, std::move(pieces));
  outputQuota_ = charged;
  nextChunk_ += count;
  return result;
}

// The storage numbers the chunks of an attempt from 0 without a gap.
void RemoteRun::resumeChunks() {
  const auto exists = [this](std::uint64_t number) {
    const auto page = deps_.storage.chunks().read({job_.endpoint, job_.lease.job}, number, 1);
    return page && !page->chunks.empty();
  };
  std::uint64_t least = 0;  // all chunks below exist
  std::uint64_t beyond = 1;
  while (exists(beyond - 1)) beyond *= 2;
  for (least = beyond / 2; least + 1 < beyond;) {
    const std::uint64_t middle = least + (beyond - least) / 2;
    (exists(middle - 1) ? least : beyond) = middle;
  }
  Lock lock(mutex_);
  nextChunk_ = least;
}

ReportResult RemoteRun::progress(std::string json) {
  return deps_.storage.leases().progress(job_.lease, std::move(json));
}

}  // namespace jobq
