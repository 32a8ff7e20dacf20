#include "core/http/transport/parked_connections.h"

#include <algorithm>

namespace jobq {
namespace {

bool isUnserved(ParkedConnection::State state) {
  return state == ParkedConnection::State::idle || state == ParkedConnection::State::readingHead;
}

}  // namespace

std::size_t ParkedConnections::openRequests() const noexcept {
  return static_cast<std::size_t>(std::count_if(parked_.begin(), parked_.end(), [](const auto& each) {
    const ParkedConnection::State state = each.second.state;
    return !isUnserved(state) && state != ParkedConnection::State::lingeringClose;
  }));
}

std::optional<ParkedConnections::Moment> ParkedConnections::nextDeadline() const noexcept {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void ParkedConnections::add(ParkedConnection parked) {
  const std::uint64_t id = parked.connection->id();
  if (parked.deadline != Moment::max()) deadlines_.emplace(parked.deadline, id);
  parked_.emplace(id, std::move(parked));
}

std::optional<ParkedConnection> ParkedConnections::extract(std::uint64_t id) {
  const auto found = parked_.find(id);
  if (found == parked_.end()) return std::nullopt;
  std::optional<ParkedConnection> parked(std::move(found->second));
  deadlines_.erase({parked->deadline, id});
  parked_.erase(found);
  return parked;
}

std::optional<ParkedConnection> ParkedConnections::extractSuspended(std::uint64_t id) {
  const auto found = parked_.find(id);
  if (found == parked_.end() || found->second.state != ParkedConnection::State::suspended) return std::nullopt;
  return extract(id);
}

std::vector<ParkedConnection> ParkedConnections::extractLate(Moment now) {
  std::vector<ParkedConnection> late;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    late.push_back(std::move(*extract(deadlines_.begin()->second)));
  }
  return late;
}

std::vector<ParkedConnection> ParkedConnections::extractUnserved() {
  std::vector<ParkedConnection> taken;
  for (auto at = parked_.begin(); at != parked_.end();) {
    const auto here = at++;
    if (!isUnserved(here->second.state)) continue;
    taken.push_back(std::move(*extract(here->first)));
  }
  return taken;
}

std::vector<ParkedConnection> ParkedConnections::extractAll() {
  std::vector<ParkedConnection> taken;
  for (auto& [id, parked] : parked_) taken.push_back(std::move(parked));
  parked_.clear();
  deadlines_.clear();
  return taken;
}

}  // namespace jobq
