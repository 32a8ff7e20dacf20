// Memory for the inputs of claimed jobs, from before their claim until the handler has returned or the remote worker
// has got the job.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "jobq/job.h"
#include "jobq/mutex.h"

namespace jobq {

class QueueSignal;

/// Any thread. Outlives what is held.
class InputMemory {
 public:
  static constexpr std::uint64_t kMost = 512UL << 20;      ///< bytes of all inputs
  static constexpr std::uint64_t kOfEndpoint = kMost / 4;  ///< bytes of the inputs of one endpoint
  static constexpr std::uint64_t kOfAClaim = 32UL << 20;   ///< bytes of one claim, above the largest input

  /// Bytes in use, until the destructor.
  class Held {
   public:
    Held() = default;
    Held(Held&& other) noexcept
        : memory_(std::exchange(other.memory_, nullptr)),
          endpoint_(std::move(other.endpoint_)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Held& operator=(Held&&) = delete;
    ~Held() { release(); }
    void release() noexcept;

   private:
    friend class InputMemory;
    Held(InputMemory& memory, EndpointId endpoint, std::uint64_t bytes)
        : memory_(&memory), endpoint_(std::move(endpoint)), bytes_(bytes) {}

    InputMemory* memory_ = nullptr;
    EndpointId endpoint_;
    std::uint64_t bytes_ = 0;
  };

  /// Takes room for the inputs of a claim. Returns no value if there is none: the dispatcher is woken when inputs were
  /// freed.
  std::optional<Held> reserveForClaim();
  /// Returns true if the endpoint has used up its part. The dispatcher is woken when inputs were freed.
  bool hasUsedUp(const EndpointId& endpoint);
  /// Counts an input that is in memory already. A small one (kSmallInput) is not counted.
  Held hold(const EndpointId& endpoint, std::uint64_t bytes);

  /// Sets the signal of the dispatcher, before the first claim. `signal` outlives what is held.
  void setSignal(QueueSignal& signal) { signal_ = &signal; }

 private:
  QueueSignal* signal_ = nullptr;
  Mutex mutex_;
  std::uint64_t used_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::map<EndpointId, std::uint64_t, std::less<>> ofEndpoints_ JOBQ_GUARDED_BY(mutex_);  // those above 0
  bool isAwaited_ JOBQ_GUARDED_BY(mutex_) = false;
};

}  // namespace jobq
