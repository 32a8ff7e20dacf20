#include "worker_process.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>

#include "marked_processes.h"
#include "process_end.h"
#include "worker_environment.h"

namespace jobq::process {

WorkerProcess::WorkerProcess(WorkerId worker, EndpointId endpoint, GuardedProcess process, ProcessLaunch launch,
                             WorkerLog log)
    : worker_(std::move(worker)),
      endpoint_(std::move(endpoint)),
      process_(std::move(process)),
      launch_(std::move(launch)),
      log_(std::move(log)) {}

void WorkerProcess::stop(SteadyTime latest) {
  if (!std::exchange(isTerminated_, true)) process_.terminate();
  if (!isKilled_) latest_ = std::min(latest, latest_.value_or(latest));
}

void WorkerProcess::kill() {
  if (std::exchange(isKilled_, true)) return;
  process_.kill();
  latest_ = std::chrono::steady_clock::now() + kGuardTime;
}

void WorkerProcess::checkDeadline(SteadyTime now) {
  if (!latest_ || now < *latest_) return;
  if (!isKilled_) return kill();
  latest_.reset();
  process_.killGuard();
}

// The number of reads is bounded: a worker that writes without end must not keep the thread from the other workers.
int WorkerProcess::readOutput(OutputBuffer& outputs) {
  constexpr int kMostReads = 16;
  std::array<char, 64 * 1024> buffer;
  int error = 0;
  for (int i = 0; i < kMostReads; ++i) {
    const ssize_t length = ::read(process_.output().number(), buffer.data(), buffer.size());
    if (length < 0 && errno == EINTR) continue;
    if (length == 0) process_.output().close();
    if (length <= 0) break;
    const std::string_view output(buffer.data(), static_cast<std::size_t>(length));
    lastLine_.add(output);
    outputs.add(worker_, output);
    if (const int failed = log_.append(output); failed != 0 && !std::exchange(isLogBroken_, true)) error = failed;
  }
  return error;
}

bool WorkerProcess::readStatus() {
  std::array<char, 64> buffer;
  while (true) {
    const ssize_t length = ::read(process_.status().number(), buffer.data(), buffer.size());
    if (length == 0) return true;
    if (length < 0 && errno == EINTR) continue;
    if (length < 0) return errno != EAGAIN;
    report_.append(buffer.data(), static_cast<std::size_t>(length));
  }
}

WorkerExit WorkerProcess::finish() {
  const ProcessEnd end = readEnd(report_, process_.reap());
  if (end.kind == ProcessEnd::Kind::unknown) killMarked(launch_.environment.at(std::string(kMark)));
  return exitOf(worker_, end, launch_.arguments.front(), launch_.directory.string(), lastLine_.text());
}

}  // namespace jobq::process
