// A value with many readers and rare replacements. Every request reads the value, so the readers are spread over
// several locks, by thread.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "jobq/mutex.h"

namespace jobq {

/// Any thread may call. A value obtained by get() never changes, however often a new value replaces the old one.
template <class Value>
class SharedSnapshot {
 public:
  using Pointer = std::shared_ptr<const Value>;

  /// Returns null before the first set().
  Pointer get() const {
    static std::atomic<std::size_t> threads = 0;
    thread_local const std::size_t kThread = threads++;
    const Shard& shard = shards_[kThread % shards_.size()];
    Lock lock(shard.mutex);
    return shard.value;
  }

  /// Replaces the value. During the call some threads may still read the old value.
  void set(const Pointer& value) {
    setIf(value, [](const Value&) { return true; });
  }

  /// Replaces the value where `isOlder(present)` is true. With several concurrent calls the newest value stays.
  template <class IsOlder>
  void setIf(const Pointer& value, IsOlder&& isOlder) {
    for (Shard& shard : shards_) {
      Lock lock(shard.mutex);
      if (!shard.value || isOlder(*shard.value)) shard.value = value;
    }
  }

 private:
  // The copy of the pointer for some of the threads.
  struct alignas(64) Shard {
    mutable Mutex mutex;
    Pointer value JOBQ_GUARDED_BY(mutex);
  };
  std::array<Shard, 16> shards_;
};

}  // namespace jobq
