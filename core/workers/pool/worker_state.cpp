#include "core/workers/pool/worker_state.h"

namespace jobq {

std::string_view nameOf(WorkerState state) noexcept {
  switch (state) {
    case WorkerState::starting: return "starting";
    case WorkerState::idle: return "idle";
    case WorkerState::reserved: return "reserved";
    case WorkerState::busy: return "busy";
    case WorkerState::stuck: return "stuck";
    case WorkerState::leaving: return "leaving";
  }
  return "";
}

std::string_view nameOf(WorkerEvent event) noexcept {
  switch (event) {
    case WorkerEvent::ready: return "ready";
    case WorkerEvent::reserve: return "reserve";
    case WorkerEvent::assign: return "assign";
    case WorkerEvent::release: return "release";
    case WorkerEvent::stopWorker: return "stopWorker";
    case WorkerEvent::stopGraceOver: return "stopGraceOver";
  }
  return "";
}

std::string_view apiNameOf(WorkerState state) noexcept {
  switch (state) {
    case WorkerState::reserved: return nameOf(WorkerState::idle);
    case WorkerState::busy: return "running";
    default: return nameOf(state);
  }
}

}  // namespace jobq
