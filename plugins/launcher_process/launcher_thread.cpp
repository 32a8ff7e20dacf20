#include "launcher_thread.h"

#include <poll.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "process_end.h"
#include "worker_environment.h"

namespace jobq::process {

namespace {

constexpr std::size_t kKeptLogs = 20;  // logs of ended workers, for each endpoint

ProcessLaunch processOf(WorkerLaunch& launch, const LauncherPlan& plan) {
  ProcessLaunch process{.name = launch.worker,
                        .directory = plan.directory,
                        .user = plan.user,
                        .arguments = std::move(launch.container.entrypoint),
                        .environment = {}};
  process.arguments.insert(process.arguments.end(), launch.container.command.begin(), launch.container.command.end());
  if (!launch.gpus.empty()) launch.env[std::string(kVisibleGpus)] = joinedWithCommas(launch.gpus);
  process.environment = environmentOf(plan.mark + launch.worker + "/", std::move(launch.env), plan.variables);
  return process;
}

}  // namespace

LauncherThread::LauncherThread(LauncherPlan plan, Mailbox& mailbox, Log& log)
    : plan_(std::move(plan)), mailbox_(mailbox), log_(log), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), "launcher");
}

LauncherThread::~LauncherThread() {
  mailbox_.end();
  thread_.join();
}

void LauncherThread::run() {
  while (!isEnding_ || !workers_.empty()) {
    awaitEvents();
    followRequests();
    const SteadyTime now = std::chrono::steady_clock::now();
    for (WorkerProcess& worker : workers_) worker.checkDeadline(now);
    readWorkers();
  }
}

void LauncherThread::awaitEvents() {
  std::vector<pollfd> events{{mailbox_.descriptor(), POLLIN, 0}};
  for (WorkerProcess& worker : workers_) {
    events.push_back({worker.statusDescriptor(), POLLIN, 0});
    events.push_back({worker.outputDescriptor(), POLLIN, 0});  // poll() leaves out a closed descriptor, -1
  }
  ::poll(events.data(), events.size(), millisecondsToDeadline());
}

int LauncherThread::millisecondsToDeadline() const {
  std::optional<SteadyTime> first;
  for (const WorkerProcess& worker : workers_) {
    if (const auto deadline = worker.deadline()) first = std::min(*deadline, first.value_or(*deadline));
  }
  if (!first) return -1;
  constexpr std::int64_t kLongest = 3'600'000;
  const auto left = std::chrono::ceil<Millis>(*first - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, kLongest));
}

void LauncherThread::followRequests() {
  Mailbox::Requests requests = mailbox_.drainRequests();
  if (requests.isEnding && !std::exchange(isEnding_, true)) {
    for (WorkerProcess& worker : workers_) worker.kill();
  }
  if (isEnding_) return;
  for (WorkerLaunch& launch : requests.starts) start(std::move(launch));
  for (const Mailbox::Stop& stop : requests.stops) {
    for (WorkerProcess& worker : workers_) {
      if (worker.worker() == stop.worker) worker.stop(stop.latest);
    }
  }
}

void LauncherThread::start(WorkerLaunch launch) {
  const WorkerId worker = launch.worker;
  ProcessLaunch process = processOf(launch, plan_);
  if (const auto fault = textFaultOf(process)) return mailbox_.addExit(failedStart(worker, *fault));
  auto started = GuardedProcess::start(plan_.guard, process);
  if (const int* const error = std::get_if<int>(&started)) {
    return mailbox_.addExit(failedStart(worker, plan_.guard.string() + ": " + errorText(*error)));
  }
  workers_.emplace_back(worker, launch.endpoint, std::get<GuardedProcess>(std::move(started)), std::move(process),
                        WorkerLog(plan_.logs / launch.endpoint, worker, plan_.maxLog));
}

void LauncherThread::readWorkers() {
  for (auto worker = workers_.begin(); worker != workers_.end();) {
    // The order counts: the output of an ended worker is complete.
    const bool hasEnded = worker->readStatus();
    readOutputOf(*worker);
    if (hasEnded) finish(*worker);
    worker = hasEnded ? workers_.erase(worker) : std::next(worker);
  }
}

void LauncherThread::readOutputOf(WorkerProcess& worker) {
  if (worker.outputDescriptor() < 0) return;
  const int error = worker.readOutput(mailbox_.outputs());
  if (error == 0) return;
  log_.write(LogLevel::warning, "launcher.log",
             "the output of the worker " + worker.worker() + " of the endpoint " + worker.endpoint() +
                 " cannot be written to " + plan_.logs.string() + ": " + errorText(error) +
                 "; give the server space and the right to write there");
}

void LauncherThread::finish(WorkerProcess& worker) {
  WorkerExit exit = worker.finish();
  std::set<WorkerId> running;
  for (const WorkerProcess& other : workers_) running.insert(other.worker());
  running.erase(worker.worker());
  removeOldLogs(plan_.logs / worker.endpoint(), running, kKeptLogs);
  mailbox_.addExit(std::move(exit));
}

}  // namespace jobq::process
