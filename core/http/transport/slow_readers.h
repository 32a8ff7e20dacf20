// The clients that read answers slowly. An unread answer holds memory, so the number of such clients is bounded.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/clock.h"
#include "core/http/transport/address_places.h"
#include "jobq/mutex.h"

namespace jobq {

class ByteStream;

/// The client of one answer.
struct AnswerReader {
  ByteStream& stream;
  PeerAddress address;
  bool hasKey = false;  ///< the request came with a valid key
};

/// Places for clients whose answer takes longer than a second; clients without a key have a quarter of the places at
/// most. Without room for a new reader, the connection of an old reader is ended: of a client that reads less than
/// kDemandedPace; else of an address with more than a quarter of the places; else of any client. Among several the
/// reader with the fewest bytes a second is chosen, then the oldest. Readers of less than a second come last. A client
/// without a key ends only connections of clients without a key. Any thread.
class SlowReaders {
 public:
  /// `time` outlives the object.
  explicit SlowReaders(std::size_t most, const TimeSource& time = TimeSource::ofMachine());
  SlowReaders(const SlowReaders&) = delete;
  SlowReaders& operator=(const SlowReaders&) = delete;

  /// The place of one reader, returned by the destructor. SlowReaders outlives each place. One thread at a time.
  class Place {
   public:
    Place() = default;
    Place(SlowReaders& owner, std::uint64_t number) noexcept : owner_(&owner), number_(number) {}
    Place(Place&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), number_(other.number_) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(number_, other.number_);
      return *this;
    }
    ~Place() {
      if (owner_ != nullptr) owner_->leave(number_);
    }

    /// Returns true for the place of a reader. The reader may have lost the place meanwhile.
    bool isTaken() const noexcept { return owner_ != nullptr; }

   private:
    SlowReaders* owner_ = nullptr;
    std::uint64_t number_ = 0;
  };

  /// Returns a place for the reader, whose stream outlives the place. Without room, ends the connection of an old
  /// reader. Returns a place that is not taken if no connection may be ended.
  Place enter(const AnswerReader& reader) noexcept;

  /// Returns the number of places in use.
  std::size_t taken() const;

 private:
  using Moment = std::chrono::steady_clock::time_point;

  struct Entry {
    std::uint64_t number;
    ByteStream* stream;
    PeerAddress address;
    bool hasKey;
    Moment begin;
    std::uint64_t takenAtBegin;  // bytes of the connection that the client had read
  };

  using Entries = std::vector<Entry>;

  static bool isOfLarge(const Entry& entry, const Entries& all, std::size_t most);
  bool hasRoom(bool withKey) const JOBQ_REQUIRES(mutex_);
  void endOne(bool withKey) JOBQ_REQUIRES(mutex_);
  void leave(std::uint64_t number) noexcept;

  const std::size_t most_;
  const TimeSource& time_;
  mutable Mutex mutex_;
  std::uint64_t last_ JOBQ_GUARDED_BY(mutex_) = 0;
  Entries entries_ JOBQ_GUARDED_BY(mutex_);  // within the memory of the constructor
};

}  // namespace jobq
