#include "core/worker_program/end_request.h"

#include <csignal>

namespace jobq::worker {

EndRequest::EndRequest() : signals_({SIGTERM, SIGINT}) {}

void EndRequest::fail(const std::string& reason) {
  {
    Lock lock(mutex_);
    if (!failure_) failure_ = reason;
  }
  signals_.send(SIGTERM);
}

void EndRequest::await() { (void)signals_.await(); }

std::optional<std::string> EndRequest::failure() const {
  Lock lock(mutex_);
  return failure_;
}

}  // namespace jobq::worker
