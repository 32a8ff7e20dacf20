// The state of a remote worker as two tables of changes. A worker decides over HTTP when to call, so any event may come
// in any state. An event without a row changes nothing. The tables are apart, because a worker may ask to be replaced
// before the first call here, with a job that an earlier life of the server or a different node has handed out.
//
// RemoteWorkerState decides whether the worker gets jobs:
//
//  serving --leave--> leaving --disconnect--> serving        (next comes a new process under the same id)
//     |                  |
//   retire             retire
//     v                  v
//  retired --leave--> retiring --disconnect--> retired       (final: the launcher gives each process an id of its own)
//
// EarlierJobs tells what is known of the jobs that the worker has from an earlier life of the server. The storage has
// returned most of the jobs to the queue, so a report could look like the report of a new attempt:
//
//  unasked --ping--> pinged
//     |                |
//     +----------------+--callWithJobs----------> unknown --ping, callWithoutJobs--> known
//     +----------------+--call, callWithoutJobs------------------------------------> known
//
#pragma once

#include <array>

#include "core/workers/pool/state_table.h"

namespace jobq {

enum class RemoteWorkerState {
  serving,
  leaving,   ///< the worker has asked to be replaced, and gets no further job
  retiring,  ///< both: the other nodes still have to read that the worker leaves
  retired,   ///< the server ends the worker: the worker gets no further job, and calls are not held
};

enum class RemoteWorkerEvent {
  leave,       ///< the worker asks to be replaced
  disconnect,  ///< the last connection of the worker to this node ends
  retire,      ///< the server ends the worker, or the process of a launched worker has ended
};

using RemoteWorkerTransition = StateChange<RemoteWorkerState, RemoteWorkerEvent>;

inline constexpr std::array kRemoteWorkerTransitions{
    RemoteWorkerTransition{RemoteWorkerState::serving, RemoteWorkerEvent::leave, RemoteWorkerState::leaving},
    RemoteWorkerTransition{RemoteWorkerState::serving, RemoteWorkerEvent::retire, RemoteWorkerState::retired},
    RemoteWorkerTransition{RemoteWorkerState::leaving, RemoteWorkerEvent::disconnect, RemoteWorkerState::serving},
    RemoteWorkerTransition{RemoteWorkerState::leaving, RemoteWorkerEvent::retire, RemoteWorkerState::retiring},
    RemoteWorkerTransition{RemoteWorkerState::retiring, RemoteWorkerEvent::disconnect, RemoteWorkerState::retired},
    RemoteWorkerTransition{RemoteWorkerState::retired, RemoteWorkerEvent::leave, RemoteWorkerState::retiring},
};

/// Returns true if the worker has asked to be replaced.
constexpr bool isLeaving(RemoteWorkerState state) noexcept {
  return state == RemoteWorkerState::leaving || state == RemoteWorkerState::retiring;
}

/// Returns true if the server ends the worker.
constexpr bool isRetired(RemoteWorkerState state) noexcept {
  return state == RemoteWorkerState::retiring || state == RemoteWorkerState::retired;
}

enum class EarlierJobs {
  unasked,  ///< neither a ping nor a call for jobs has come
  pinged,   ///< a ping has listed the jobs, and no call for jobs has come
  unknown,  ///< the worker has called, and has jobs that no ping has listed since
  known,    ///< the worker has called, and each earlier job is known here
};

enum class EarlierJobsEvent {
  ping,             ///< a ping lists all jobs of the worker
  call,             ///< a call for jobs that says nothing of the jobs in hand, or on a storage that nodes share
  callWithJobs,     ///< a call for jobs of a worker with jobs
  callWithoutJobs,  ///< a call for jobs of a worker without jobs
};

using EarlierJobsTransition = StateChange<EarlierJobs, EarlierJobsEvent>;

/// The first call alone tells of earlier jobs: jobs in hand at a later call are jobs of this life.
inline constexpr std::array kEarlierJobsTransitions{
    EarlierJobsTransition{EarlierJobs::unasked, EarlierJobsEvent::ping, EarlierJobs::pinged},
    EarlierJobsTransition{EarlierJobs::unasked, EarlierJobsEvent::call, EarlierJobs::known},
    EarlierJobsTransition{EarlierJobs::unasked, EarlierJobsEvent::callWithJobs, EarlierJobs::unknown},
    EarlierJobsTransition{EarlierJobs::unasked, EarlierJobsEvent::callWithoutJobs, EarlierJobs::known},
    EarlierJobsTransition{EarlierJobs::pinged, EarlierJobsEvent::call, EarlierJobs::known},
    EarlierJobsTransition{EarlierJobs::pinged, EarlierJobsEvent::callWithJobs, EarlierJobs::unknown},
    EarlierJobsTransition{EarlierJobs::pinged, EarlierJobsEvent::callWithoutJobs, EarlierJobs::known},
    EarlierJobsTransition{EarlierJobs::unknown, EarlierJobsEvent::ping, EarlierJobs::known},
    EarlierJobsTransition{EarlierJobs::unknown, EarlierJobsEvent::callWithoutJobs, EarlierJobs::known},
};

/// Returns true if the worker has called for jobs.
constexpr bool hasCalled(EarlierJobs state) noexcept {
  return state == EarlierJobs::unknown || state == EarlierJobs::known;
}

}  // namespace jobq
