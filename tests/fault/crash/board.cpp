#include "board.h"

#include <utility>

namespace jobq::fault {
namespace {

template <class Item>
std::optional<Item> first(std::deque<Item>& line) {
  if (line.empty()) return std::nullopt;
  std::optional<Item> item(std::move(line.front()));
  line.pop_front();
  return item;
}

}  // namespace

void Board::add(Target target) {
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(target));
  more_.notify_one();
}

std::optional<Target> Board::next() {
  std::unique_lock lock(mutex_);
  more_.wait(lock, [this] { return closed_ || !waiting_.empty(); });
  return closed_ ? std::nullopt : extract();
}

std::optional<Target> Board::nextNow() {
  const std::lock_guard lock(mutex_);
  return closed_ || waiting_.empty() ? std::nullopt : extract();
}

std::optional<Target> Board::extract() {
  Target target = std::move(waiting_.front());
  waiting_.pop_front();
  ++beingAsked_;
  return target;
}

void Board::done() {
  const std::lock_guard lock(mutex_);
  --beingAsked_;
  progress_.notify_one();
}

std::size_t Board::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_.size();
}

void Board::addUnanswered(Plan plan) {
  const std::lock_guard lock(mutex_);
  unanswered_.push_back(std::move(plan));
}

std::optional<Plan> Board::extractUnanswered() {
  const std::lock_guard lock(mutex_);
  auto plan = first(unanswered_);
  if (plan) ++beingAsked_;
  return plan;
}

void Board::addStreaming(Target target) {
  const std::lock_guard lock(mutex_);
  streaming_.push_back(std::move(target));
}

std::optional<Target> Board::extractStreaming() {
  const std::lock_guard lock(mutex_);
  return first(streaming_);
}

void Board::addFailed(Target target) {
  const std::lock_guard lock(mutex_);
  failed_.push_back(std::move(target));
}

std::optional<Target> Board::extractFailed() {
  const std::lock_guard lock(mutex_);
  return first(failed_);
}

void Board::countAcknowledged() {
  const std::lock_guard lock(mutex_);
  ++acknowledged_;
  progress_.notify_one();
}

void Board::awaitAcknowledged(std::uint64_t count, Deadline deadline) {
  std::unique_lock lock(mutex_);
  progress_.wait_until(lock, deadline, [&] { return closed_ || acknowledged_ >= count; });
}

bool Board::awaitEmpty(Deadline deadline) {
  std::unique_lock lock(mutex_);
  return progress_.wait_until(lock, deadline,
                              [this] { return waiting_.empty() && unanswered_.empty() && beingAsked_ == 0; });
}

void Board::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  more_.notify_all();
  progress_.notify_one();
}

bool Board::closed() const {
  const std::lock_guard lock(mutex_);
  return closed_;
}

}  // namespace jobq::fault
