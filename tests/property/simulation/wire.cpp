#include "wire.h"

#include "jobq/error.h"

namespace jobq::model {

void Wire::refuseIfCut(std::string_view operation) const {
  if (isClosed_) throw StorageError("the process is dead");
  if (isCut_ && (cutOperation_.empty() || cutOperation_ == operation)) throw StorageError("the network is cut");
}

bool Wire::isHit(std::string_view operation) {
  if (isSlow_ || plan_.times == 0 || (!plan_.operation.empty() && plan_.operation != operation)) return false;
  if (plan_.skipped > 0) {
    --plan_.skipped;
    return false;
  }
  --plan_.times;
  ++faults_;
  return true;
}

// Returns true if the call has a fault after the step of the storage.
bool Wire::begin(std::string_view operation) {
  events_.beforeCall(operation);
  refuseIfCut(operation);
  if (!isHit(operation)) return false;
  if (plan_.fault == WireFault::refused) throw StorageError("the call is refused");
  if (plan_.fault == WireFault::requestLost) throw OutcomeUnknown("the request is lost");
  if (plan_.fault != WireFault::slowRequest) return true;
  isSlow_ = true;
  events_.passDuringCall(plan_.time, false);
  isSlow_ = false;
  refuseIfCut(operation);
  return false;
}

void Wire::end(std::string_view operation) {
  const Plan fault = plan_;
  if (fault.fault == WireFault::crash) events_.die();
  if (fault.fault == WireFault::answerLost) throw OutcomeUnknown("the answer is lost");
  if (fault.fault == WireFault::slowAnswer || fault.fault == WireFault::pause) {
    isSlow_ = true;
    events_.passDuringCall(fault.time, fault.fault == WireFault::pause);
    isSlow_ = false;
  }
  try {
    refuseIfCut(operation);
  } catch (const StorageError& error) {  // the step has happened
    throw OutcomeUnknown(error.what());
  }
}

void Wire::around(const char* operation, const std::function<bool()>& call) {
  const bool hit = begin(operation);
  events_.enterStorage(true);
  try {
    call();
  } catch (...) {
    events_.enterStorage(false);
    throw;
  }
  events_.enterStorage(false);
  if (hit) end(operation);
}

}  // namespace jobq::model
