// The words of the image handler for transfers that fail: what happened, and what the sender of the job can do.
#pragma once

#include <cstdint>
#include <string>

#include "http_client/transfer.h"
#include "jobq/time.h"

namespace jobq::image {

inline constexpr const char* kUserAgent = "jobq-image/1";
inline constexpr int kMaxRedirects = 3;  ///< of a fetch; an upload follows none

/// Returns the reason of a failed transfer as a clause with the remedy and without secrets. `maxBody` and `timeout` are
/// the bounds of the transfer: bytes of the answer's body, and its time. Pure; any thread. Throws std::bad_alloc if
/// the transfer ran out of memory.
std::string reasonOf(const http_client::Fault& fault, std::uint64_t maxBody, Millis timeout);

}  // namespace jobq::image
