#include "core/http/api/body_memory.h"

namespace jobq {

bool BodyMemory::Reservation::grow(BodyMemory& memory, std::string_view endpoint, std::uint64_t amount) {
  if (!endpoint_) endpoint_ = memory.budgetOf(endpoint);
  if (!ofEndpoint_.grow(*endpoint_, amount)) return false;
  if (ofAll_.grow(memory.all_, amount)) return true;
  ofEndpoint_.shrinkTo(ofEndpoint_.amount() - amount);
  return false;
}

bool BodyMemory::hasRoom(std::string_view endpoint, std::uint64_t amount) {
  return all_.left() >= amount && budgetOf(endpoint)->left() >= amount;
}

std::shared_ptr<Budget> BodyMemory::budgetOf(std::string_view endpoint) {
  Lock lock(mutex_);
  const auto found = endpoints_.find(endpoint);
  if (found != endpoints_.end()) {
    if (auto budget = found->second.lock()) return budget;
  }
  std::erase_if(endpoints_, [](const auto& entry) { return entry.second.expired(); });
  auto budget = std::make_shared<Budget>(perEndpoint_);
  endpoints_[std::string(endpoint)] = budget;
  return budget;
}

}  // namespace jobq
