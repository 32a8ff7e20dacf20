// Broken twins: parts of a simulation of several nodes with one fault each. A twin replaces the storage, stands in
// front of the storage, or leaves out a thread of the nodes. The simulation has to find each twin.
#pragma once

#include <cstdint>
#include <memory>

#include "jobq/log.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq::model {

enum class Twin : std::uint8_t {
  none,
  noAttemptFencing,   ///< the storage accepts the result of any attempt
  noSelfFencing,      ///< the fence is never checked
  shortLease,         ///< the storage ends lives sooner than nodes beat
  newsLost,           ///< no question of the ChangePoller is ever asked
  epochNotGrown,      ///< a join goes on with the life before
  insertTwice,        ///< a repeated insert makes another job
  finishTwice,        ///< a repeated finish counts again
  sweepWithoutCause,  ///< a sweep takes back the jobs of living nodes
  hostClock,          ///< the clock of the calling node decides about time
  fencedClaims,       ///< the dispatcher does not see the fence
  earlyRelease,       ///< the job of a fenced run goes back before its handler has ended
  noBeatGap,          ///< the first beat after an outage does not extend the lives
  runsNotFollowed,    ///< each attempt looks held, so no run is stopped after an end elsewhere
  claimsForgotten     ///< the jobs of an unanswered claim are never found
};

/// Returns an empty storage for several nodes.
std::unique_ptr<Storage> openStore(Twin twin, Clock& clock, Log& log);

/// Returns the storage of the twin in front of `inner`. The storage has no fault if the fault is elsewhere.
std::unique_ptr<Storage> breakStorage(Twin twin, Storage& inner, const Clock& clock);

}  // namespace jobq::model
