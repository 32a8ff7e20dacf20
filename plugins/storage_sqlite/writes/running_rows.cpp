#include "writes/running_rows.h"

#include <algorithm>
#include <functional>

namespace jobq::sqlite {

void RunningRows::load(Connection& connection, std::int64_t others) {
  RunningByNumber loaded;
  if (connection.number("SELECT count(*) FROM job INDEXED BY job_expiry WHERE listed = 1") != others) {
    Query query = connection.query("SELECT num, endpoint, deadline FROM job NOT INDEXED WHERE state = 1");
    while (query.next()) loaded.emplace(query.integer(0), RunningRow{query.text(1), query.instant(2)});
  }
  Lock lock(mutex_);
  rows_ = std::move(loaded);
}

void RunningRows::apply(RunningChanges& changes) noexcept {
  if (changes.changes_.empty()) return;
  Lock lock(mutex_);
  while (!changes.changes_.empty()) {
    auto change = changes.changes_.extract(changes.changes_.begin());
    rows_.erase(change.key());
    if (change.mapped()) rows_.insert(std::move(change));
  }
}

std::vector<std::int64_t> RunningRows::newestOf(std::string_view endpoint) const {
  std::vector<std::int64_t> numbers;
  {
    Lock lock(mutex_);
    for (const auto& [num, row] : rows_) {
      if (row->endpoint == endpoint) numbers.push_back(num);
    }
  }
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  return numbers;
}

std::map<EndpointId, std::int64_t> RunningRows::countByEndpoint() const {
  std::map<EndpointId, std::int64_t> counts;
  Lock lock(mutex_);
  for (const auto& [num, row] : rows_) ++counts[row->endpoint];
  return counts;
}

template <class Function>
void RunningChanges::visitAll(Function&& visit) const {
  Lock lock(rows_->mutex_);
  for (const auto& [num, row] : rows_->rows_) {
    if (!changes_.contains(num)) visit(num, *row);
  }
  for (const auto& [num, row] : changes_) {
    if (row) visit(num, *row);
  }
}

std::optional<RunningRow> RunningChanges::find(std::int64_t num) const {
  const auto changed = changes_.find(num);
  if (changed != changes_.end()) return changed->second;
  Lock lock(rows_->mutex_);
  const auto found = rows_->rows_.find(num);
  return found == rows_->rows_.end() ? std::nullopt : found->second;
}

std::vector<std::int64_t> RunningChanges::all() const {
  std::vector<std::int64_t> numbers;
  visitAll([&](std::int64_t num, const RunningRow&) { numbers.push_back(num); });
  return numbers;
}

std::vector<std::int64_t> RunningChanges::of(std::string_view endpoint) const {
  std::vector<std::int64_t> numbers;
  visitAll([&](std::int64_t num, const RunningRow& row) {
    if (row.endpoint == endpoint) numbers.push_back(num);
  });
  return numbers;
}

std::vector<std::int64_t> RunningChanges::overdue(Instant now, std::size_t most) const {
  std::vector<std::pair<Instant, std::int64_t>> found;
  visitAll([&](std::int64_t num, const RunningRow& row) {
    if (row.deadline <= now) found.emplace_back(row.deadline, num);
  });
  const auto end = found.begin() + static_cast<std::ptrdiff_t>(std::min(most, found.size()));
  std::partial_sort(found.begin(), end, found.end());
  found.erase(end, found.end());
  std::vector<std::int64_t> numbers;
  numbers.reserve(found.size());
  for (const auto& [deadline, num] : found) numbers.push_back(num);
  return numbers;
}

}  // namespace jobq::sqlite
