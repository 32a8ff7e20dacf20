// The jobs in the hands of a remote worker, as far as the worker has shown the jobs by pings and calls
// (core/decisions/remote_workers.md). Plain state, guarded by the mutex of RemoteRegistry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "core/workers/pool/state_table.h"
#include "core/workers/remote/remote_worker_state.h"
#include "jobq/time.h"

namespace jobq {

/// Not thread-safe.
class ShownJobs {
 public:
  /// Notes a call for jobs.
  void noteCall(EarlierJobsEvent call, Instant now) noexcept {
    earlier_.apply(call);
    if (call == EarlierJobsEvent::callWithoutJobs) shownAt_ = now;
  }
  void notePing(Instant now) noexcept { lastPing_ = now; }
  /// Notes that the jobs of the last ping are known here.
  void noteEarlierJobs() noexcept { earlier_.apply(EarlierJobsEvent::ping); }
  /// Notes that since `moment` each job of the worker is known here, or was handed out by a living node.
  void noteShown(Instant moment) noexcept { shownAt_ = std::max(shownAt_, moment); }

  /// Returns true if the worker has called for jobs.
  bool hasCalled() const noexcept { return jobq::hasCalled(earlier_.get()); }
  /// Returns true if the worker has jobs of an earlier life of the server that are unknown here.
  bool areUnknown() const noexcept { return earlier_.get() == EarlierJobs::unknown; }
  /// Returns true if the unknown jobs of a ping are of an earlier life of the server.
  bool arePingsAwaited() const noexcept { return earlier_.permits(EarlierJobsEvent::ping); }
  /// Returns the moment since when the worker has to show all held jobs; no value if no job waits for that.
  std::optional<Instant> question() const noexcept {
    return askedSince_ > shownAt_ ? std::optional(askedSince_) : std::nullopt;
  }

  /// Returns true if the worker may get a job under the attempt. Until `unheardUntil`, nodes that have died may have
  /// handed out jobs that no other node has read of. A job that has run before may be such a job, so the worker must
  /// have shown all held jobs since; otherwise the function asks for them. A worker without pings then gets no other
  /// job either: the handlers end, and the next call reports that the worker has no job.
  bool mayGet(std::uint32_t attempt, Instant unheardUntil, Instant now) noexcept {
    constexpr Millis kNoPings{60'000};
    constexpr Millis kHeldBack{1'000};
    if (now < heldBackUntil_) return false;
    if (attempt == 1 || shownAt_ >= unheardUntil) return true;
    if (unheardUntil != Instant::max()) askedSince_ = unheardUntil;
    if (!lastPing_ || now >= *lastPing_ + kNoPings) heldBackUntil_ = now + kHeldBack;
    return false;
  }

 private:
  TableState<kEarlierJobsTransitions> earlier_;
  std::optional<Instant> lastPing_;
  Instant shownAt_{};
  Instant askedSince_{};
  Instant heldBackUntil_{};  // the worker gets no job until then
};

}  // namespace jobq
