// The version of the ABI between the server and its plugins. The rule for raising it is in abi.h.
#pragma once

#include <cstdint>

namespace jobq::abi {

inline constexpr std::uint32_t kMajor = 3;
inline constexpr std::uint32_t kMinor = 0;

/// Base of every interface that plugins implement: an object knows which ABI its library was built for.
class Versioned {
 public:
  /// Returns the minor of the sdk that the implementation was compiled with. A virtual of a later minor does not exist
  /// in this object, and a call of it is undefined. Any thread.
  std::uint32_t abiMinor() const noexcept { return abiMinor_; }

 private:
  std::uint32_t abiMinor_ = kMinor;  // set by a constructor that is compiled into the plugin
};

}  // namespace jobq::abi
