#include "handler_rules.h"

#include <algorithm>
#include <vector>

namespace jobq::model {

std::string text(const LeaseRef& lease) { return "attempt " + std::to_string(lease.attempt) + " of " + lease.job; }

HandlerRules::Place HandlerRules::begins(const std::string& node, const LeaseRef& lease) {
  ++findings_.played["runs"];
  const Place place = handlers_.insert(handlers_.end(), {node, lease, clock_.now(), false});
  check();
  return place;
}

void HandlerRules::nodeDied(const std::string& node) {
  ++findings_.played["crashes"];
  for (Handler& handler : handlers_) handler.isDead = handler.isDead || handler.node == node;
}

void HandlerRules::excuse(const std::string& node, Instant until) {
  Excuse& excuse = excuses_[node];
  if (until == Instant::max()) excuse.since = clock_.now();
  excuse.until = until;
}

bool HandlerRules::isExcused(const Handler& handler) const {
  if (overdue_.contains({handler.lease.job, handler.lease.attempt})) return true;
  const auto excuse = excuses_.find(handler.node);
  if (excuse == excuses_.end()) return false;
  const auto [since, until] = excuse->second;
  return until == Instant::max() || (handler.begunAt <= since && clock_.now() < until);
}

void HandlerRules::check() {
  std::map<JobId, std::vector<const Handler*>> ofJob;
  for (const Handler& handler : handlers_) {
    if (!handler.isDead) ofJob[handler.lease.job].push_back(&handler);
  }
  for (const auto& [job, handlers] : ofJob) {
    if (handlers.size() < 2) continue;
    const auto strict = std::ranges::count_if(handlers, [&](const Handler* each) { return !isExcused(*each); });
    if (strict < 2) {
      ++findings_.played["excused moments"];
      continue;
    }
    findings_.note("double run: " + handlers[0]->node + " runs " + text(handlers[0]->lease) + ", and " +
                   handlers[1]->node + " runs " + text(handlers[1]->lease));
  }
}

void HandlerRules::releasing(const LeaseRef& lease) {
  ++findings_.played["released"];
  for (const Handler& handler : handlers_) {
    if (handler.isDead || handler.lease != lease) continue;
    findings_.note("early release: " + text(lease) + " goes back while its handler runs");
  }
}

}  // namespace jobq::model
