#include "core/http/transport/connection_ownership.h"

#include "core/http/transport/byte_stream.h"

namespace jobq {
namespace {

/// A client that keeps connections for later calls closes them after this time at the earliest: the public worker SDK
/// after 15 s.
constexpr std::chrono::seconds kIdleEnd{14};

}  // namespace

// A process that is killed closes its idle connections, and does not reset them unless it had left an answer unread.
// HAProxy resets the connections that it has kept for some seconds, while their client is well.
void ConnectionOwnership::noteClosed(const ByteStream& stream, bool isIdle) noexcept {
  if (!owner_) return;
  const bool isInOrder = isIdle && (time_.steady() - idleSince_ >= kIdleEnd || stream.wasReset());
  if (!isInOrder) noteTorn();
}

}  // namespace jobq
