// The operations that a storage may have beyond those that each storage has.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "jobq/error.h"

namespace jobq {

/// An operation, or a use of an operation, that some storages lack.
enum class Capability : std::uint32_t {
  insertBegun = 1,      ///< JobStore::insert() with Begun
  insertLater = 2,      ///< JobStore::insertLater()
  insertAndClaim = 4,   ///< Storage::insertAndClaim()
  finishAndClaim = 8,   ///< LeaseStore::finish() with a claim
  finishUnsynced = 16,  ///< LeaseStore::finish() with Durability::unsynced
  adopt = 32,           ///< LeaseStore::adopt()
  backup = 64           ///< Storage::backupTo()
};

/// A set of capabilities.
struct Capabilities {
  constexpr Capabilities() noexcept = default;
  constexpr Capabilities(std::initializer_list<Capability> list) noexcept {
    for (const Capability each : list) bits |= static_cast<std::uint32_t>(each);
  }

  /// Returns true if the set holds `capability`.
  [[nodiscard]] constexpr bool has(Capability capability) const noexcept {
    return (bits & static_cast<std::uint32_t>(capability)) != 0;
  }

  std::uint32_t bits = 0;
};

/// Throws the StorageError of a call without the capability for the call. `use` names the operation.
[[noreturn]] inline void throwLacking(const char* use) {
  throw StorageError("this storage has no " + std::string(use) + ": ask Storage::capabilities() before the call");
}

}  // namespace jobq
