#include "core/workers/node/node_life.h"

#include <utility>

#include "core/base/repeated_call.h"

namespace jobq {

void NodeLife::join() {
  Holder holder = callRepeatedly([this] { return storage_.nodes().join(name_); });
  Lock lock(mutex_);
  holder_ = std::move(holder);
}

void NodeLife::leave() {
  const Holder life = holder();
  callRepeatedly([&] { storage_.nodes().leave(life); });
}

Holder NodeLife::holder() const {
  Lock lock(mutex_);
  return holder_;
}

void NodeLife::setShare(const NodeShare& share) {
  Lock lock(mutex_);
  share_ = share;
}

NodeShare NodeLife::share() const {
  Lock lock(mutex_);
  return share_;
}

void NodeLife::setLives(NodeLives lives) {
  Lock lock(mutex_);
  lives_ = std::move(lives);
}

NodeLives NodeLife::lives() const {
  Lock lock(mutex_);
  return lives_;
}

void NodeLife::setDrained(const std::set<std::string>& nodes) {
  Lock lock(mutex_);
  drained_ = nodes;
  isDrained_ = drained_.contains(name_);
}

bool NodeLife::isDrained(const std::string& node) const {
  Lock lock(mutex_);
  return drained_.contains(node);
}

}  // namespace jobq
