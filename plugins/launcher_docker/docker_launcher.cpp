#include "docker_launcher.h"

#include <pthread.h>

#include <chrono>
#include <exception>
#include <utility>

#include "container_body.h"
#include "final_removal.h"
#include "jobq/json.h"
#include "probe.h"
#include "server_label.h"

namespace jobq::docker {
namespace {

constexpr std::size_t kStarters = 4;
constexpr std::chrono::seconds kCallsEnd{5};    // time for the calls under way when the launcher ends
constexpr std::chrono::seconds kRemovalEnd{9};  // time for the removal of the containers afterwards

}  // namespace

DockerLauncher::DockerLauncher(const PluginEnv& env)
    : options_(env.config),
      auths_(options_.readAuths(env.dataDir)),
      server_(serverLabelOf(env.dataDir)),
      log_(env.log),
      engine_(options_.socket, stop_.get_token()),
      starter_(engine_, table_, follower_, auths_,
               {.server = server_,
                .network = options_.network,
                .shm = options_.shm,
                .memory = options_.memory,
                .pids = options_.pids},
               log_),
      watcher_(engine_, table_, follower_, server_, log_) {
  try {
    runThread(&DockerLauncher::watchWorkers);
    runThread(&DockerLauncher::sendSignals);
    for (std::size_t i = 0; i < kStarters; ++i) runThread(&DockerLauncher::startWorkers);
  } catch (...) {
    endThreads();
    throw;
  }
}

DockerLauncher::~DockerLauncher() {
  endThreads();
  try {
    const auto left = removeAllContainers(options_.socket, server_, Engine::Clock::now() + kRemovalEnd);
    if (!left) return;
    log_.write(
        LogLevel::warning, "launcher.leftover",
        "the containers of this server are not all removed: " + *left + "; the next start of the server removes them");
  } catch (const std::exception& error) {
    log_.write(LogLevel::warning, "launcher.leftover", error.what());
  }
}

std::vector<CheckResult> DockerLauncher::probe(const PluginEnv& env) {
  const Options options(env.config);
  (void)options.readAuths(env.dataDir);
  return probeDocker(options.socket);
}

std::optional<std::string> DockerLauncher::fault(const ContainerSpec& container) const {
  if (auto found = faultOf(container)) return found;
  return authFault(auths_, container);
}

void DockerLauncher::runThread(void (DockerLauncher::*work)()) {
  threads_.reserve(threads_.size() + 1);
  {
    Lock lock(mutex_);
    ++running_;
  }
  const auto run = [this, work] {
    pthread_setname_np(pthread_self(), "docker");
    (this->*work)();
    Lock lock(mutex_);
    --running_;
    threadEnded_.notifyAll();
  };
  try {
    threads_.emplace_back(run);
  } catch (...) {
    Lock lock(mutex_);
    --running_;
    throw;
  }
}

// A call for the creation or start of a container gets time to end, so the final removal includes the container.
void DockerLauncher::endThreads() {
  table_.close();
  {
    const auto end = std::chrono::steady_clock::now() + kCallsEnd;
    Lock lock(mutex_);
    while (running_ > 0 && std::chrono::steady_clock::now() < end) {
      threadEnded_.waitFor(mutex_, end - std::chrono::steady_clock::now());
    }
  }
  stop_.request_stop();
  follower_.stop();
  for (std::thread& thread : threads_) thread.join();
}

void DockerLauncher::startWorkers() {
  while (const auto claimed = table_.awaitLaunch()) {
    try {
      starter_.startWorker(*claimed);
    } catch (const std::exception& error) {
      table_.endStart(claimed->launch.worker, {true, std::string("it could not be started: ") + error.what(), true});
    }
  }
}

void DockerLauncher::watchWorkers() {
  do {
    try {
      watcher_.watchContainers();
    } catch (const std::exception& error) {
      log_.write(LogLevel::error, "launcher.failed", std::string("the look at the containers failed: ") + error.what());
    }
  } while (table_.awaitPass());
}

void DockerLauncher::sendSignals() {
  for (auto due = table_.awaitSignals(); !due.empty(); due = table_.awaitSignals()) {
    for (const DueSignal& signal : due) {
      const auto fault = engine_.signalContainer(signal.container, signal.isKill ? "SIGKILL" : "SIGTERM");
      table_.noteSignal(signal, !fault);
    }
  }
}

}  // namespace jobq::docker
