// The handler of the crash proof records the begin and the end of each of its runs in a journal that outlives the
// server. A line is one write() within a page, so a kill leaves the line whole or absent.
//
//   input   {"number":17,"workMs":5,"failBelow":3,"chunks":2}   works for 5 ms; attempts below 3 fail
//           with "ignoreStop":1 the work goes on after a stop; with "nameAttempt":1 the output has "attempt" too;
//           with "until":"/a/file" the work goes on, after its time, until the file exists
//   chunks  {"number":17,"attempt":1,"place":0}      2 of these during the work
//   output  {"echo":17,"square":289}                 unique to the job
//   journal begin|output|failed|stopped, number, job, attempt, process, CLOCK_MONOTONIC in nanoseconds
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "jobq/abi.h"
#include "jobq/error.h"
#include "jobq/job_handler.h"
#include "jobq/json.h"
#include "journal_line.h"

namespace {

std::int64_t monotonicNanos() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

class Journal {
 public:
  explicit Journal(const std::string& path)
      : file_(::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600)) {
    if (file_ < 0) throw jobq::ConfigError("JOURNAL " + path + " cannot be opened: " + std::strerror(errno));
  }
  ~Journal() { ::close(file_); }
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  void write(const char* what, std::int64_t number, const jobq::JobContext& context) const {
    std::string line = std::string(what) + " " + std::to_string(number) + " " + context.id() + " " +
                       std::to_string(context.attempt()) + " " + std::to_string(::getpid()) + " " +
                       std::to_string(monotonicNanos());
    line.resize(jobq::fault::kJournalLine - 1, ' ');
    line += '\n';
    // A run without its line would make the checker accuse the server.
    if (::write(file_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) std::abort();
  }

 private:
  const int file_;
};

class Witness final : public jobq::JobHandler {
 public:
  explicit Witness(const std::string& journal) : journal_(journal) {}

  std::string run(std::string_view input, jobq::JobContext& context) override {
    const auto document = std::get<jobq::json::Document>(jobq::json::read(input));
    const std::int64_t number = integer(document, "number");
    journal_.write("begin", number, context);
    if (!emitAndWork(number, document, context)) {
      journal_.write("stopped", number, context);
      throw jobq::JobFailed("number " + std::to_string(number) + " was stopped");
    }
    if (context.attempt() < integer(document, "failBelow")) {
      journal_.write("failed", number, context);
      throw jobq::JobFailed("number " + std::to_string(number) + " was told to fail");
    }
    journal_.write("output", number, context);
    std::string output = "{\"echo\":" + std::to_string(number) + ",\"square\":" + std::to_string(number * number);
    if (integer(document, "nameAttempt") != 0) output += ",\"attempt\":" + std::to_string(context.attempt());
    return output + "}";
  }

 private:
  static std::int64_t integer(const jobq::json::Document& document, std::string_view key) {
    const auto value = document.find(key);
    return value ? jobq::json::toInteger(*value).value_or(0) : 0;
  }

  /// Works for an equal part of the time after each chunk. Returns false if stopped before the time was over.
  static bool emitAndWork(std::int64_t number, const jobq::json::Document& document, jobq::JobContext& context) {
    const std::int64_t chunks = integer(document, "chunks");
    const std::chrono::milliseconds part(integer(document, "workMs") / (chunks + 1));
    const std::stop_token stop = integer(document, "ignoreStop") != 0 ? std::stop_token() : context.stopToken();
    for (std::int64_t place = 0; place < chunks; ++place) {
      context.emit("{\"number\":" + std::to_string(number) + ",\"attempt\":" + std::to_string(context.attempt()) +
                   ",\"place\":" + std::to_string(place) + "}");
      if (!work(part, stop)) return false;
    }
    return work(part, stop) && awaitFile(document, stop);
  }

  /// Returns false if stopped before the file of the job exists.
  static bool awaitFile(const jobq::json::Document& document, const std::stop_token& stop) {
    const auto until = document.find("until");
    if (!until) return true;
    const std::string path = jobq::json::decode(until->raw);
    while (::access(path.c_str(), F_OK) != 0) {
      if (!work(std::chrono::milliseconds(10), stop)) return false;
    }
    return true;
  }

  /// Returns false if stopped before the time was over.
  static bool work(std::chrono::milliseconds duration, const std::stop_token& stop) {
    if (duration.count() == 0) return !stop.stop_requested();
    std::mutex mutex;
    std::condition_variable_any over;
    std::unique_lock<std::mutex> lock(mutex);
    over.wait_for(lock, stop, duration, [] { return false; });
    return !stop.stop_requested();
  }

  const Journal journal_;
};

class WitnessFactory final : public jobq::HandlerFactory {
 public:
  explicit WitnessFactory(const jobq::PluginEnv&) {}

  std::unique_ptr<jobq::JobHandler> make(const jobq::HandlerEnv& env) override {
    return std::make_unique<Witness>(env.variables.at("JOURNAL"));
  }
};

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::HandlerFactory, WitnessFactory>("witness", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
