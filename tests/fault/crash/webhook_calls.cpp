#include "webhook_calls.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace jobq::fault {
namespace {

/// Returns the attempt of `<job>.<attempt>`; empty if the id names another job.
std::optional<std::uint32_t> attemptIn(const ReceivedCall& call) {
  if (!call.id.starts_with(call.job + ".")) return std::nullopt;
  const char* begin = call.id.data() + call.job.size() + 1;
  const char* end = call.id.data() + call.id.size();
  std::uint32_t attempt = 0;
  const auto [rest, fault] = std::from_chars(begin, end, attempt);
  return fault == std::errc() && rest == end ? std::optional(attempt) : std::nullopt;
}

bool says(const ReceivedCall& call, const Sight& end) {
  if (call.status != nameOf(end.state)) return false;
  return !end.whole || (call.output == end.output && call.error == end.error);
}

}  // namespace

void WebhookCalls::closed(const JobHistory& job, const Sight* end) {
  Owed& owed = owed_[job.id];
  if (end != nullptr) owed.end = *end;
  const bool cancelled = std::any_of(job.orders.begin(), job.orders.end(),
                                     [](const Order& order) { return order.command == Order::Command::cancel; });
  const bool ran =
      std::any_of(job.runs.begin(), job.runs.end(), [](const Run& run) { return run.end != Run::End::none; });
  const Nanos now = job.absences.empty() ? INT64_MAX : job.absences.back().span.answered;
  if (end != nullptr || cancelled || ran) owed.mostEnds = 1 + retriesAsked(job, now);
  for (const Run& run : job.runs) {
    if (run.end == Run::End::output) owed.returned.insert(run.attempt);
  }
}

void WebhookCalls::called(const ReceivedCall& call) {
  ++calls_;
  const auto attempt = attemptIn(call);
  if (!attempt) {
    faults_.push_back("a webhook with the id " + call.id + " tells of job " + call.job);
    return;
  }
  const auto [known, isNew] = arrived_[call.job].try_emplace(*attempt, call);
  if (isNew) return;
  ++repeated_;
  const ReceivedCall& first = known->second;
  if (first.status != call.status || first.output != call.output || first.error != call.error) {
    faults_.push_back("webhook " + call.id + " said " + first.status + " and later " + call.status +
                      ", or another output or error");
  }
}

void WebhookCalls::judge(const std::string& job, const Owed& owed, std::vector<std::string>& faults) const {
  const auto arrived = arrived_.find(job);
  if (arrived == arrived_.end()) return;
  if (arrived->second.size() > owed.mostEnds) {
    faults.push_back("job " + job + " ended at most " + std::to_string(owed.mostEnds) +
                     " times, and webhooks told of " + std::to_string(arrived->second.size()) + " ends");
  }
  for (const auto& [attempt, call] : arrived->second) {
    if (call.status == nameOf(JobState::completed) && !owed.returned.contains(attempt)) {
      faults.push_back("webhook " + call.id + " said COMPLETED, but that attempt has returned no output");
    }
  }
  if (!owed.end) return;
  const auto told = [&](const auto& known) { return says(known.second, *owed.end); };
  const ReceivedCall& last = arrived->second.rbegin()->second;
  if (!says(last, *owed.end) && std::any_of(arrived->second.begin(), arrived->second.end(), told)) {
    faults.push_back("webhook " + last.id + " said " + last.status + ", after the job's last end");
  }
}

std::vector<std::string> WebhookCalls::faults() const {
  std::vector<std::string> faults = faults_;
  for (const auto& [job, owed] : owed_) judge(job, owed, faults);
  for (const auto& [job, calls] : arrived_) {
    if (owed_.contains(job)) continue;
    for (const auto& [attempt, call] : calls) {
      // A job is unknown if its submission got no answer and its workers died before a handler began.
      if (lossesIn(call.error)) continue;
      faults.push_back("webhook " + call.id + " said " + call.status + " of an unknown job, or without a webhook");
    }
  }
  return faults;
}

std::vector<std::string> WebhookCalls::missing() const {
  std::vector<std::string> missing;
  for (const auto& [job, owed] : owed_) {
    if (!owed.end) continue;
    const auto arrived = arrived_.find(job);
    const bool told = arrived != arrived_.end() &&
                      std::any_of(arrived->second.begin(), arrived->second.end(),
                                  [&end = *owed.end](const auto& known) { return says(known.second, end); });
    if (!told) missing.push_back(job);
  }
  return missing;
}

}  // namespace jobq::fault
