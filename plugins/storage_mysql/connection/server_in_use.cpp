#include "connection/server_in_use.h"

#include <utility>

namespace jobq::mysql {

void ServerInUse::add(std::shared_ptr<OpenSockets> sockets) {
  const Lock lock(mutex_);
  sockets_.push_back(std::move(sockets));
}

bool ServerInUse::isKnown() const {
  const Lock lock(mutex_);
  return !name_.empty();
}

bool ServerInUse::isInUse(const std::string& name) {
  const Lock lock(mutex_);
  if (name_.empty()) name_ = name;
  return name_ == name;
}

void ServerInUse::moveTo(const std::string& name) {
  std::string before;
  {
    const Lock lock(mutex_);
    if (name_ == name) return;  // another thread was first
    before = std::exchange(name_, name);
    endCurrent();
  }
  if (log_ == nullptr) return;
  log_->write(LogLevel::warning, "storage.server",
              "the connections to the database reach the server " + name + " instead of " + before +
                  "; all older connections of this node are closed");
}

void ServerInUse::end(std::uint64_t generation) {
  const Lock lock(mutex_);
  if (generation_ == generation) endCurrent();
}

void ServerInUse::endCurrent() {
  ++generation_;
  for (const auto& sockets : sockets_) sockets->cutBefore(generation_);
}

}  // namespace jobq::mysql
