#include "mailbox.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "jobq/error.h"
#include "process_end.h"

namespace jobq::process {

Mailbox::Mailbox() : signal_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!signal_.isOpen()) throw ConfigError("launcher = process: no descriptor can be opened: " + errorText(errno));
}

void Mailbox::addStart(WorkerLaunch launch) {
  {
    Lock lock(mutex_);
    requests_.starts.push_back(std::move(launch));
  }
  wake();
}

void Mailbox::addStop(const WorkerId& worker, SteadyTime latest) {
  {
    Lock lock(mutex_);
    auto& starts = requests_.starts;
    const auto queued = std::find_if(starts.begin(), starts.end(),
                                     [&worker](const WorkerLaunch& launch) { return launch.worker == worker; });
    if (queued == starts.end()) {
      requests_.stops.push_back({worker, latest});
    } else {
      exits_.push_back({worker, false, "it was stopped before it began"});
      starts.erase(queued);
    }
  }
  wake();
}

void Mailbox::end() {
  {
    Lock lock(mutex_);
    requests_.isEnding = true;
  }
  wake();
}

Mailbox::Requests Mailbox::drainRequests() {
  eventfd_t count = 0;
  (void)::eventfd_read(signal_.number(), &count);  // before the requests: a later request signals again
  Lock lock(mutex_);
  return std::exchange(requests_, Requests{{}, {}, requests_.isEnding});
}

void Mailbox::addExit(WorkerExit exit) {
  Lock lock(mutex_);
  exits_.push_back(std::move(exit));
}

std::vector<WorkerExit> Mailbox::drainExits() {
  Lock lock(mutex_);
  return std::exchange(exits_, {});
}

void Mailbox::wake() { (void)::eventfd_write(signal_.number(), 1); }

}  // namespace jobq::process
