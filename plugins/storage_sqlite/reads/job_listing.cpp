#include "reads/job_listing.h"

#include <algorithm>

namespace jobq::sqlite {
namespace {

void listBehind(Connection& connection, std::int64_t listed) {
  connection.query("UPDATE job SET listed = 1 WHERE num > ?1 AND listed = 0").bind(listed).run();
}

}  // namespace

void JobNumbers::load(Connection& connection) {
  last_ = connection.number(
      "SELECT max(ifnull((SELECT max(num) FROM job), 0), "
      "ifnull((SELECT max(arrival) FROM job INDEXED BY job_late WHERE arrival > num), 0))");
  // Ends at the first listed job from the end of the table.
  listBehind(connection, connection.number("SELECT ifnull((SELECT num FROM job NOT INDEXED WHERE listed = 1 "
                                           "ORDER BY num DESC LIMIT 1), 0)"));
  listed_ = last_;
}

LocatedId JobNumbers::locate(std::string_view id) const {
  const Lock lock(mutex_);
  const auto found = unlisted_.find(id);
  return {id, found == unlisted_.end() ? std::nullopt : std::optional(found->second)};
}

LocatedId ListingChange::locate(std::string_view id) const {
  const auto found = added_.find(id);
  return found == added_.end() ? numbers_->locate(id) : LocatedId{id, found->second};
}

void ListingChange::listAll(Connection& connection) {
  if (listed() == numbers_->last()) return;
  listBehind(connection, listed());
  upTo_ = numbers_->last();
}

void ListingChange::listMany(Connection& connection) {
  if (numbers_->last() - listed() >= kMostUnlisted) listAll(connection);
}

// A removed job may stay among the ids until the next listing: no row has its number.
void ListingChange::publishIds() {
  if (added_.empty()) return;
  const Lock lock(numbers_->mutex_);
  for (const auto& [id, num] : added_) numbers_->unlisted_.insert_or_assign(id, num);
}

void ListingChange::apply() noexcept {
  if (!upTo_) return;
  NumbersById former;  // destroyed without the lock
  {
    const Lock lock(numbers_->mutex_);
    if (std::any_of(added_.begin(), added_.end(), [this](const auto& added) { return added.second > *upTo_; })) {
      std::erase_if(numbers_->unlisted_, [this](const auto& unlisted) { return unlisted.second <= *upTo_; });
    } else {
      former.swap(numbers_->unlisted_);
    }
  }
  numbers_->listed_ = *upTo_;
}

}  // namespace jobq::sqlite
