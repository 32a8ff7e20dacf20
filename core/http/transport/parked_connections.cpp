#include "core/http/transport/parked_connections.h"

namespace jobq {

std::optional<ParkedConnections::Moment> ParkedConnections::nextDeadline() const noexcept {
  if (deadlines_.empty()) return std::nullopt;
  return deadlines_.begin()->first;
}

void ParkedConnections::add(ParkedConnection parked) {
  const std::uint64_t id = parked.connection->id();
  deadlines_.emplace(parked.deadline, id);
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

std::vector<ParkedConnection> ParkedConnections::extractLate(Moment now) {
  std::vector<ParkedConnection> late;
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    late.push_back(std::move(*extract(deadlines_.begin()->second)));
  }
  return late;
}

std::vector<ParkedConnection> ParkedConnections::extractUnlessLingering() {
  std::vector<ParkedConnection> taken;
  for (auto at = parked_.begin(); at != parked_.end();) {
    const auto here = at++;
    if (here->second.state != ParkedConnection::State::lingeringClose)
      taken.push_back(std::move(*extract(here->first)));
  }
  return taken;
}

std::vector<ParkedConnection> ParkedConnections::extractAll() { return extractLate(Moment::max()); }

}  // namespace jobq
