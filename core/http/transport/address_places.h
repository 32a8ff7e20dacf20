// Counts the connections of each peer address, and of all addresses together.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "jobq/mutex.h"

namespace jobq {

/// The family of an address, and the part of the address that counts: all of an IPv4 address, the /64 network of an
/// IPv6 address.
using PeerAddress = std::pair<int, std::uint64_t>;

/// Any thread. An IPv4 address counts alone, also when written as an IPv6 address. The IPv6 addresses of a /64 network
/// count together, because a single machine may choose among all of them.
class AddressPlaces {
 public:
  /// `most` is the number of connections that an address may have at once; 0 means any number.
  explicit AddressPlaces(std::size_t most) noexcept : most_(most) {}
  AddressPlaces(const AddressPlaces&) = delete;
  AddressPlaces& operator=(const AddressPlaces&) = delete;

  /// The place of a single connection, returned by the destructor. AddressPlaces outlives each place.
  class Place {
   public:
    Place() = default;
    Place(AddressPlaces& owner, const PeerAddress& address) noexcept : owner_(&owner), address_(address) {}
    Place(Place&& other) noexcept : owner_(std::exchange(other.owner_, nullptr)), address_(other.address_) {}
    Place& operator=(Place&& other) noexcept {
      std::swap(owner_, other.owner_);
      std::swap(address_, other.address_);
      return *this;
    }
    ~Place() {
      if (owner_ != nullptr) owner_->release(address_);
    }

    const PeerAddress& address() const noexcept { return address_; }

   private:
    AddressPlaces* owner_ = nullptr;
    PeerAddress address_;
  };

  /// Returns a place for a connection from `peer`, or nullopt if the address has `most` places already. Throws
  /// std::bad_alloc.
  std::optional<Place> reserve(const sockaddr_storage& peer);

  /// Returns the number of places in use.
  std::size_t taken() const;

 private:
  static PeerAddress addressOf(const sockaddr_storage& peer) noexcept;
  void release(const PeerAddress& address) noexcept;

  const std::size_t most_;
  mutable Mutex mutex_;
  std::size_t taken_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::map<PeerAddress, std::size_t> byAddress_ JOBQ_GUARDED_BY(mutex_);  // empty without a limit
};

}  // namespace jobq
