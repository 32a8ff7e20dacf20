// The state machine of a worker as a table.
//
//  starting --ready--> idle --reserve--> reserved --assign--> busy --stopGraceOver--> stuck
//                      | ^ ^               |                   |                        |
//           stopWorker | | +----release----+                   |                        |
//                      v +-----------------ready---------------+---------ready----------+
//                   leaving
//
// A new worker is starting. A worker may end in each state; its record is then removed (WorkerSet::remove), so the end
// is no state. WorkerSet (core/workers/pool/worker_set.h) is the only place where the state of a worker changes.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "core/workers/pool/state_table.h"

namespace jobq {

enum class WorkerState {
  starting,
  idle,
  reserved,  ///< a claim for this worker is under way
  busy,
  stuck,  ///< the handler ignores its stop token
  leaving,
};

inline constexpr std::size_t kWorkerStates = 6;
static_assert(static_cast<std::size_t>(WorkerState::leaving) + 1 == kWorkerStates);

/// Causes of a change of state.
enum class WorkerEvent {
  ready,          ///< the executor reports a worker without a job
  reserve,        ///< a claim for the worker begins
  assign,         ///< the claim found a job for the worker
  release,        ///< the claim found no job for the worker
  stopWorker,     ///< the worker is told to end
  stopGraceOver,  ///< the handler still runs stopGrace after the stop of its job
};

using WorkerTransition = StateChange<WorkerState, WorkerEvent>;

/// All permitted changes.
inline constexpr std::array kWorkerTransitions{
    WorkerTransition{WorkerState::starting, WorkerEvent::ready, WorkerState::idle},
    WorkerTransition{WorkerState::idle, WorkerEvent::reserve, WorkerState::reserved},
    WorkerTransition{WorkerState::idle, WorkerEvent::stopWorker, WorkerState::leaving},
    WorkerTransition{WorkerState::reserved, WorkerEvent::assign, WorkerState::busy},
    WorkerTransition{WorkerState::reserved, WorkerEvent::release, WorkerState::idle},
    WorkerTransition{WorkerState::busy, WorkerEvent::ready, WorkerState::idle},
    WorkerTransition{WorkerState::busy, WorkerEvent::stopGraceOver, WorkerState::stuck},
    WorkerTransition{WorkerState::stuck, WorkerEvent::ready, WorkerState::idle},
};

/// Returns the state after `event`, or an empty optional if `event` is not permitted in the state `from`.
constexpr std::optional<WorkerState> next(WorkerState from, WorkerEvent event) noexcept {
  return nextState(kWorkerTransitions, from, event);
}

/// Returns the name of the state in the log. Pure; any thread.
std::string_view nameOf(WorkerState state) noexcept;

/// Returns the name of the event in the log. Pure; any thread.
std::string_view nameOf(WorkerEvent event) noexcept;

/// Returns the name of the state in answers of the API; reserved is "idle", busy is "running". Pure; any
/// thread.
std::string_view apiNameOf(WorkerState state) noexcept;

}  // namespace jobq
