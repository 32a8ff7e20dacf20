// The faults of this machine that may pass: a lack of descriptors, memory or threads. Such a fault is neither a fault
// of a job nor of a receiver, so it counts against neither (core/decisions/webhooks.md).
#pragma once

#include <cerrno>

namespace jobq {

/// Returns true if the error number of a call of the system tells of a lack of this machine that may pass. Pure.
constexpr bool isMachineFault(int error) noexcept {
  return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS || error == EAGAIN;
}

}  // namespace jobq
