#include "core/workers/run/input_memory.h"

#include "core/jobs/queue_signal.h"
#include "jobq/lease_store.h"

namespace jobq {

void InputMemory::Held::release() noexcept {
  InputMemory* const memory = std::exchange(memory_, nullptr);
  if (memory == nullptr) return;
  bool isAwaited = false;
  {
    Lock lock(memory->mutex_);
    memory->used_ -= bytes_;
    const auto used = memory->ofEndpoints_.find(endpoint_);
    if (used != memory->ofEndpoints_.end() && (used->second -= bytes_) == 0) memory->ofEndpoints_.erase(used);
    isAwaited = std::exchange(memory->isAwaited_, false);
  }
  if (isAwaited && memory->signal_ != nullptr) memory->signal_->wake();
}

std::optional<InputMemory::Held> InputMemory::reserveForClaim() {
  Lock lock(mutex_);
  if (used_ + kOfAClaim > kMost) {
    isAwaited_ = true;
    return std::nullopt;
  }
  used_ += kOfAClaim;
  return Held(*this, EndpointId(), kOfAClaim);
}

bool InputMemory::hasUsedUp(const EndpointId& endpoint) {
  Lock lock(mutex_);
  const auto used = ofEndpoints_.find(endpoint);
  const bool isUsedUp = used != ofEndpoints_.end() && used->second >= kOfEndpoint;
  isAwaited_ = isAwaited_ || isUsedUp;
  return isUsedUp;
}

InputMemory::Held InputMemory::hold(const EndpointId& endpoint, std::uint64_t bytes) {
  if (bytes <= kSmallInput) return {};
  EndpointId name = endpoint;  // before the additions: without memory there is no change
  Lock lock(mutex_);
  ofEndpoints_[endpoint] += bytes;
  used_ += bytes;
  return Held(*this, std::move(name), bytes);
}

}  // namespace jobq
