#include "core/worker/end_request.h"

#include <unistd.h>

namespace jobq::worker {

EndRequest::EndRequest() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

void EndRequest::fail(const std::string& reason) {
  {
    Lock lock(mutex_);
    if (!failure_) failure_ = reason;
  }
  ::kill(::getpid(), SIGTERM);
}

void EndRequest::await() {
  int signal = 0;
  sigwait(&signals_, &signal);
}

std::optional<std::string> EndRequest::failure() const {
  Lock lock(mutex_);
  return failure_;
}

}  // namespace jobq::worker
