#include <algorithm>

#include "memory_faces.h"

namespace jobq::memory {

OutboxRow* Outbox::owed(std::string_view id) {
  const auto found = s_.outbox.find(id);
  return found == s_.outbox.end() || found->second.delivery.state != DeliveryState::owed ? nullptr : &found->second;
}

void Outbox::setDue(OutboxRow& row, Instant due) {
  s_.byDue.erase({row.delivery.dueAt, row.sequence, row.delivery.id});
  row.delivery.dueAt = due;
  s_.byDue.emplace(due, row.sequence, row.delivery.id);
}

std::vector<Delivery> Outbox::claimDue(std::size_t max, Millis lease) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  std::vector<Delivery> due;
  while (due.size() < max && !s_.byDue.empty() && std::get<Instant>(*s_.byDue.begin()) <= now) {
    OutboxRow& row = s_.outbox.at(std::get<std::string>(*s_.byDue.begin()));
    due.push_back(row.delivery);
    setDue(row, now + lease);
  }
  return due;
}

bool Outbox::settle(std::string_view id, DeliveryState state) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  OutboxRow* row = owed(id);
  if (row == nullptr) return false;
  s_.byDue.erase({row->delivery.dueAt, row->sequence, row->delivery.id});
  row->delivery.state = state;
  row->settledAt = now;
  return true;
}

bool Outbox::reschedule(std::string_view id, Millis delay) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  OutboxRow* row = owed(id);
  if (row == nullptr) return false;
  setDue(*row, now + delay);
  return true;
}

bool Outbox::recordAttempt(std::string_view id, DeliveryAttempt attempt) {
  Lock lock(s_.mutex);
  attempt.at = s_.retire();
  const auto found = s_.outbox.find(id);
  if (found == s_.outbox.end()) return false;
  found->second.delivery.attempts.push_back(std::move(attempt));
  return true;
}

std::vector<Delivery> Outbox::list(std::string_view endpoint, std::string_view job, std::size_t limit) {
  Lock lock(s_.mutex);
  s_.retire();
  std::vector<const OutboxRow*> rows;
  for (const auto& [id, row] : s_.outbox) {
    const Job& of = row.delivery.job;
    if (of.endpoint == endpoint && (job.empty() || of.id == job)) rows.push_back(&row);
  }
  std::sort(rows.begin(), rows.end(), [&job](const OutboxRow* a, const OutboxRow* b) {
    return job.empty() ? a->sequence > b->sequence : a->sequence < b->sequence;
  });
  std::vector<Delivery> listed;
  for (const OutboxRow* row : rows) {
    if (listed.size() == limit) break;
    listed.push_back(row->delivery);
    listed.back().input.clear();
    listed.back().job.output.clear();
  }
  return listed;
}

bool Outbox::replay(std::string_view id) {
  Lock lock(s_.mutex);
  const Instant now = s_.retire();
  const auto found = s_.outbox.find(id);
  if (found == s_.outbox.end()) return false;
  found->second.delivery.state = DeliveryState::owed;
  setDue(found->second, now);
  return true;
}

}  // namespace jobq::memory
