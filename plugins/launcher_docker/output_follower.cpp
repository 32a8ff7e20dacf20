#include "output_follower.h"

#include <pthread.h>

#include <chrono>
#include <cstdint>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "docker_socket.h"
#include "log_frames.h"

namespace jobq::docker {
namespace {

/// Moves the contents of the frames to the output of a worker.
class FrameSink final : public BodySink {
 public:
  FrameSink(OutputBuffer& outputs, const WorkerId& worker) : outputs_(outputs), worker_(worker) {}

  bool addPiece(std::string_view piece) override {
    outputs_.add(worker_, reader_.read(piece));
    return true;
  }

 private:
  OutputBuffer& outputs_;
  const WorkerId& worker_;
  FrameReader reader_;
};

std::int64_t secondsNow() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace

void OutputFollower::follow(const WorkerId& worker, const std::string& container) {
  Lock lock(mutex_);
  if (isStopped_) return;
  Follower& follower = follower_[worker];
  try {
    follower.thread = std::thread([this, worker, container, stop = follower.stop.get_token()] {
      pthread_setname_np(pthread_self(), "docker-output");
      followContainer(worker, container, stop);
      noteEnd(worker);
    });
  } catch (const std::system_error&) {  // the worker goes on without a reader
    follower_.erase(worker);
  } catch (const std::bad_alloc&) {
    follower_.erase(worker);
  }
}

// A broken connection is opened again after a second, from the second of the break on: lines of that second may come
// twice.
void OutputFollower::followContainer(const WorkerId& worker, const std::string& container,
                                     const std::stop_token& stop) {
  std::optional<std::int64_t> since;
  while (!stop.stop_requested()) {
    FrameSink sink(outputs_, worker);
    std::optional<EngineFault> fault;
    try {
      fault = engine_.followLog(container, since, sink, stop);
    } catch (const std::bad_alloc&) {
      fault = EngineFault{};
    }
    if (!fault || fault->status != 0) return;
    since = secondsNow();
    constexpr Millis kPause{1'000};
    const auto end = std::chrono::steady_clock::now() + kPause;
    Lock lock(mutex_);
    while (!stop.stop_requested() && std::chrono::steady_clock::now() < end) {
      ended_.waitFor(mutex_, end - std::chrono::steady_clock::now());
    }
  }
}

void OutputFollower::noteEnd(const WorkerId& worker) {
  Lock lock(mutex_);
  const auto found = follower_.find(worker);
  if (found != follower_.end()) found->second.hasEnded = true;
  ended_.notifyAll();
}

// With the lock, because a thread may be between the look at its token and the wait.
void OutputFollower::wakeAll() {
  Lock lock(mutex_);
  ended_.notifyAll();
}

void OutputFollower::finish(const WorkerId& worker) {
  std::thread thread;
  std::stop_source stop;
  {
    const auto end = std::chrono::steady_clock::now() + kRest;
    Lock lock(mutex_);
    const auto found = follower_.find(worker);
    if (found == follower_.end()) return;
    while (!isStopped_ && !found->second.hasEnded && std::chrono::steady_clock::now() < end) {
      ended_.waitFor(mutex_, end - std::chrono::steady_clock::now());
    }
    if (isStopped_) return;  // stop() has the thread
    stop = found->second.stop;
    thread = std::move(found->second.thread);
    follower_.erase(found);
  }
  stop.request_stop();
  wakeAll();
  thread.join();
}

void OutputFollower::stop() {
  std::map<WorkerId, Follower> followers;
  {
    Lock lock(mutex_);
    isStopped_ = true;
    followers.swap(follower_);
  }
  for (auto& [worker, follower] : followers) follower.stop.request_stop();
  wakeAll();
  for (auto& [worker, follower] : followers) follower.thread.join();
}

}  // namespace jobq::docker
