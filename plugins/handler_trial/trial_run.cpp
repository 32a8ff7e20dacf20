#include "trial_run.h"

#include <time.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "jobq/error.h"
#include "jobq/json_writer.h"
#include "pause.h"

namespace jobq::trial {

namespace {

constexpr std::size_t kMegabyte = 1024 * 1024;
constexpr std::size_t kPage = 4096;
constexpr std::size_t kChunkFrame = 64;  // bytes of a chunk around its data
constexpr int kExitStatus = 3;

// Returns processor time instead of the clock's time: a burn must be a load on a busy machine and under a manual clock
// too.
Millis processorTime() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return Millis(spent.tv_sec * 1000 + spent.tv_nsec / 1'000'000);
}

void burn(Millis duration, const Pause& pause) {
  const Millis end = processorTime() + duration;
  volatile std::uint64_t sum = 0;
  while (processorTime() < end) {
    for (std::uint64_t i = 0; i < 10'000; ++i) sum = sum + i * i;
    pause.check("burning");
  }
}

using Block = std::unique_ptr<char[]>;

std::vector<Block> allocate(std::int64_t megabytes, const Pause& pause) {
  std::vector<Block> blocks;
  for (std::int64_t i = 0; i < megabytes; ++i) {
    pause.check("allocating");
    char* bytes = new (std::nothrow) char[kMegabyte];
    if (bytes == nullptr) {
      throw JobFailed("memory ran out after " + std::to_string(i) + " MB of allocMb " + std::to_string(megabytes) +
                      "; ask for less");
    }
    blocks.emplace_back(bytes);
    // An untouched page costs no memory, and the compiler would drop plain writes that are never read.
    for (std::size_t at = 0; at < kMegabyte; at += kPage) static_cast<volatile char*>(bytes)[at] = 1;
  }
  return blocks;
}

void emitChunks(const TrialRequest& request, JobContext& context, Pause& pause) {
  const std::string data = json::quoted(std::string(static_cast<std::size_t>(request.chunkBytes), 'x'));
  for (std::int64_t i = 0; i < request.chunks; ++i) {
    if (request.chunkWait > Millis(0)) pause.wait(request.chunkWait, "sending chunks");
    pause.check("sending chunks");
    std::string chunk;
    chunk.reserve(data.size() + kChunkFrame);
    json::appendObject(chunk, [&data, i](json::ObjectWriter& out) {
      out.member("chunk", i);
      out.raw("data", data);
    });
    context.emit(chunk);
  }
}

void crash(Crash how, Pause& pause) {
  switch (how) {
    case Crash::none: return;
    case Crash::segv: std::raise(SIGSEGV); return;
    case Crash::abort: std::abort();
    // std::exit is avoided: destructors of a server with running threads would crash the process in another way.
    case Crash::exit: std::_Exit(kExitStatus);
    case Crash::hang: pause.waitForEver("hanging");
  }
}

}  // namespace

std::string runTrial(const TrialRequest& request, JobContext& context, Clock& clock) {
  Pause pause(clock, context.stopToken(), request.ignoreStop);
  for (const std::string_view value : request.progress) context.progress(value);
  if (request.sleep > Millis(0)) pause.wait(request.sleep, "sleeping");
  if (request.burn > Millis(0)) burn(request.burn, pause);
  const std::vector<Block> held = allocate(request.allocMb, pause);
  emitChunks(request, context, pause);
  for (const std::string& line : request.log) context.log(LogLevel::information, line);
  if (request.failMessage) throw JobFailed(*request.failMessage);
  if (request.throwMessage) throw std::runtime_error(*request.throwMessage);
  crash(request.crash, pause);
  return std::string(request.output);
}

}  // namespace jobq::trial
