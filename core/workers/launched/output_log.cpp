#include "core/workers/launched/output_log.h"

#include <algorithm>
#include <utility>

namespace jobq {

void OutputLog::beginWorker(const EndpointId& endpoint, const WorkerId& worker) {
  Lock lock(mutex_);
  logs_[worker].endpoint = endpoint;
}

void OutputLog::addOutput(const WorkerId& worker, std::string_view bytes, Instant now) {
  Lock lock(mutex_);
  const auto found = logs_.find(worker);
  if (found == logs_.end()) return;
  Log& log = found->second;
  while (!bytes.empty()) {
    const std::size_t end = std::min(bytes.find_first_of("\r\n"), bytes.size());
    const std::size_t fits = std::min(end, kLongestOutputLine - log.rest.size());
    log.rest += bytes.substr(0, fits);
    const bool isWhole = fits == end && end < bytes.size();
    bytes.remove_prefix(isWhole ? fits + 1 : fits);
    if (isWhole || log.rest.size() == kLongestOutputLine) addLine(log, std::exchange(log.rest, {}), now);
  }
}

void OutputLog::addLine(Log& log, std::string text, Instant now) {
  if (text.empty()) return;
  log.bytes += text.size();
  log.lines.push_back({++log.lastNumber, now, std::move(text)});
  while (log.lines.size() > kMostOutputLines || log.bytes > kMostOutputBytes) {
    log.bytes -= log.lines.front().text.size();
    log.lines.pop_front();
  }
}

void OutputLog::endWorker(const WorkerId& worker, std::string reason, Instant now) {
  Lock lock(mutex_);
  const auto found = logs_.find(worker);
  if (found == logs_.end()) return;
  Log& log = found->second;
  addLine(log, std::exchange(log.rest, {}), now);
  log.reason = std::move(reason);
  log.endedAt = now;
  removeSurplus();
}

void OutputLog::removeSurplus() {
  std::multimap<Instant, WorkerId> ended;
  for (const auto& [worker, log] : logs_) {
    if (log.reason) ended.emplace(log.endedAt, worker);
  }
  for (; ended.size() > kMostEnded; ended.erase(ended.begin())) logs_.erase(ended.begin()->second);
}

void OutputLog::removeOldLogs(Instant now) {
  Lock lock(mutex_);
  std::erase_if(logs_,
                [now](const auto& each) { return each.second.reason && each.second.endedAt + kKeptAfterEnd <= now; });
}

std::optional<OutputPart> OutputLog::readAfter(const EndpointId& endpoint, const WorkerId& worker, std::uint64_t after,
                                               std::size_t most) const {
  Lock lock(mutex_);
  const auto found = logs_.find(worker);
  if (found == logs_.end() || found->second.endpoint != endpoint) return std::nullopt;
  const Log& log = found->second;
  OutputPart part;
  auto line = std::ranges::upper_bound(log.lines, after, {}, &OutputLine::number);
  for (; line != log.lines.end() && part.lines.size() < most; ++line) part.lines.push_back(*line);
  part.hasMore = line != log.lines.end();
  part.reason = log.reason;
  return part;
}

std::uint64_t OutputLog::startOfTail(const WorkerId& worker, std::size_t count) const {
  Lock lock(mutex_);
  const auto found = logs_.find(worker);
  if (found == logs_.end()) return 0;
  const std::uint64_t last = found->second.lastNumber;
  return last - std::min<std::uint64_t>(last, count);
}

}  // namespace jobq
