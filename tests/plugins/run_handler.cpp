// Runs one job in a handler plugin without a server. Used by scripts, and for trying a handler by hand.
//
// run_handler LIBRARY ENTRY [--s3 FILE] [--set key=value]... [--allow-private] [--id ID] < input.json
//
// Prints the output and exits with 0, or prints the error on stderr and exits with 1; a wrong command line exits with
// 2. Values of --set are plain integers: bytes and milliseconds. The job's log goes to stderr.
#include <algorithm>
#include <csignal>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "jobq/job_handler.h"
#include "testkit/fake_job_context.h"
#include "testkit/loaded_plugin.h"

namespace {

class WallClock final : public jobq::Clock {
 public:
  jobq::Instant now() const override {
    return std::chrono::floor<jobq::Millis>(start_ + (std::chrono::steady_clock::now() - steadyStart_));
  }
  void waitUntil(jobq::Mutex& mutex, jobq::Condition& condition, jobq::Instant deadline) override JOBQ_REQUIRES(mutex) {
    const jobq::Millis left = deadline - now();
    if (left > jobq::Millis(0)) condition.waitFor(mutex, std::min<jobq::Millis>(left, std::chrono::hours(1)));
  }

 private:
  const std::chrono::system_clock::time_point start_ = std::chrono::system_clock::now();
  const std::chrono::steady_clock::time_point steadyStart_ = std::chrono::steady_clock::now();
};

using jobq::testkit::FakeJobContext;

void printReport(const FakeJobContext::Report& report) {
  switch (report.kind) {
    case FakeJobContext::Report::Kind::chunk: std::cerr << "chunk: "; break;
    case FakeJobContext::Report::Kind::progress: std::cerr << "progress: "; break;
    case FakeJobContext::Report::Kind::log: std::cerr << "log: "; break;
  }
  std::cerr << report.text << "\n";
}

struct HandlerCall {
  std::string library;
  std::string entry;
  std::string s3Config;
  std::string id = "run-handler-u1";
  bool allowPrivate = false;
  std::map<std::string, std::string, std::less<>> settings;
};

std::string readAll(std::istream& stream) { return {std::istreambuf_iterator<char>(stream), {}}; }

bool readCall(const std::vector<std::string>& words, HandlerCall& call) {
  if (words.size() < 2) return false;
  call.library = words[0];
  call.entry = words[1];
  for (std::size_t i = 2; i < words.size(); ++i) {
    if (words[i] == "--allow-private") {
      call.allowPrivate = true;
      continue;
    }
    if (i + 1 == words.size()) return false;
    const std::string& option = words[i];
    const std::string& value = words[++i];
    if (option == "--s3") {
      std::ifstream file(value);
      if (!file) return false;
      call.s3Config = readAll(file);
    } else if (option == "--id") {
      call.id = value;
    } else if (const std::size_t equals = value.find('='); option == "--set" && equals != std::string::npos) {
      call.settings[value.substr(0, equals)] = value.substr(equals + 1);
    } else {
      return false;
    }
  }
  return true;
}

int run(const HandlerCall& call) {
  WallClock clock;
  jobq::testkit::SilentLog log;
  const jobq::testkit::MapConfig config(call.settings);
  const auto factory = jobq::testkit::loadPlugin<jobq::HandlerFactory>(
      call.library, call.entry, jobq::PluginEnv{config, clock, log, ".", call.allowPrivate});
  const auto handler = factory->make(jobq::HandlerEnv{"shell", "shell", {}});
  FakeJobContext context({.id = call.id, .s3Config = call.s3Config});
  context.observe(printReport);
  std::cout << handler->run(readAll(std::cin), context) << std::endl;
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  HandlerCall call;
  if (!readCall({argv + 1, argv + argc}, call)) {
    std::cerr << "usage: run_handler LIBRARY ENTRY [--s3 FILE] [--set key=value]... [--allow-private] [--id ID]\n";
    return 2;
  }
  // A vanished peer is an error to report and no signal, like in the server.
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run(call);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
