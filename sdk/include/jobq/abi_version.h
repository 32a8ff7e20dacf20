// Version of the ABI between the server and plugins. The rule for raising the version is in abi.h.
#pragma once

#include <cstdint>

namespace jobq::abi {

inline constexpr std::uint32_t kMajor = 6;
inline constexpr std::uint32_t kMinor = 0;

/// Base of every interface that plugins implement. An object knows the ABI minor of its library.
class Versioned {
 public:
  /// Returns the minor of the sdk of the implementation. A virtual of a later minor does not exist in this object, and
  /// a call of such a virtual is undefined. Any thread.
  std::uint32_t abiMinor() const noexcept { return abiMinor_; }

 private:
  std::uint32_t abiMinor_ = kMinor;  // set by a constructor compiled into the plugin
};

}  // namespace jobq::abi
