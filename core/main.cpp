// The program jobqd: options, configuration, application, signals. Read next: `core/application.cpp` and
// `core/http/api/request_pipeline.cpp`.
#include <Poco/Exception.h>
#include <Poco/Util/HelpFormatter.h>
#include <Poco/Util/Option.h>
#include <Poco/Util/OptionProcessor.h>
#include <Poco/Util/OptionSet.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <string_view>

#include "core/application.h"
#include "core/base/clock.h"
#include "core/base/semaphore.h"
#include "core/base/words.h"
#include "core/config/log_events.h"
#include "core/config/settings_page.h"
#include "core/http/api/fields_page.h"
#include "core/process/clock_keeper.h"
#include "core/process/descriptors.h"
#include "core/process/heap_keeper.h"
#include "core/process/process_signals.h"
#include "core/start_check.h"
#include "core/storage_wait.h"

namespace {

struct Options {
  std::string config = "etc/jobq.properties";
  std::vector<std::pair<std::string, std::string>> settings;
  bool check = false;
  bool resetAdminKey = false;
};

Poco::Util::OptionSet describeOptions() {
  using Poco::Util::Option;
  Poco::Util::OptionSet set;
  set.addOption(Option("config", "c", "the configuration file (etc/jobq.properties)").argument("FILE"));
  set.addOption(Option("set", "s", "overrides one setting; may be repeated").argument("key=value").repeatable(true));
  set.addOption(Option("check", "", "checks the configuration and ends"));
  set.addOption(Option("reset-admin-key", "", "makes a new admin key, writes it to admin.key, and ends"));
  set.addOption(Option("settings", "", "prints the settings of the server, in Markdown, and ends"));
  set.addOption(Option("fields", "", "prints the fields of the API's objects, in Markdown, and ends"));
  set.addOption(Option("events", "", "prints the events of the log, in Markdown, and ends"));
  set.addOption(Option("version", "", "prints the version and ends"));
  set.addOption(Option("help", "h", "prints this help and ends"));
  return set;
}

// Returns nullopt after printing a text, such as the help.
std::optional<Options> readOptions(int argc, char** argv) {
  const Poco::Util::OptionSet set = describeOptions();
  Poco::Util::OptionProcessor processor(set);
  processor.setUnixStyle(true);
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string name;
    std::string value;
    if (!processor.process(argv[i], name, value)) {
      if (name.empty()) throw jobq::ConfigError(std::string(argv[i]) + " is not an option; see jobqd --help");
    }
    if (name == "help") {
      Poco::Util::HelpFormatter help(set);
      help.setCommand("jobqd");
      help.setUsage("--config FILE [--set key=value]... [--check | --reset-admin-key]");
      help.setHeader("The jobq server.");
      help.format(std::cout);
      return std::nullopt;
    }
    if (name == "version") {
      std::cout << "jobqd " JOBQ_VERSION "\n";
      return std::nullopt;
    }
    if (name == "settings") {
      std::cout << jobq::settingsPage();
      return std::nullopt;
    }
    if (name == "fields") {
      std::cout << jobq::fieldsPage();
      return std::nullopt;
    }
    if (name == "events") {
      std::cout << jobq::logEventsPage();
      return std::nullopt;
    }
    if (name == "config") options.config = value;
    if (name == "check") options.check = true;
    if (name == "reset-admin-key") options.resetAdminKey = true;
    if (name == "set") {
      const std::size_t equals = value.find('=');
      if (equals == std::string::npos) throw jobq::ConfigError("--set " + value + ": write --set key=value");
      options.settings.emplace_back(value.substr(0, equals), value.substr(equals + 1));
    }
  }
  processor.checkRequired();
  return options;
}

/// Receives SIGTERM and SIGINT before the server has started; a SIGHUP has no effect then.
class SignalledStop final : public jobq::StopOrder {
 public:
  explicit SignalledStop(const jobq::ProcessSignals& signals) : signals_(signals) {}

  bool await(jobq::Millis longest) override {
    const auto signal = signals_.awaitFor(longest);
    return signal == SIGTERM || signal == SIGINT;
  }

 private:
  const jobq::ProcessSignals& signals_;
};

int serve(const Options& options, const jobq::Config& config) {
  jobq::Logger log(config.logLevel, config.logFormat);
  if (options.check) {
    jobq::Application::check(config, log);
    std::cout << options.config << " is fine\ndata.dir: " << config.dataDir.string() << "\n"
              << jobq::describePrograms(config);
    return 0;
  }
  const jobq::ProcessSignals signals({SIGTERM, SIGINT, SIGHUP});
  log.write(jobq::LogLevel::debug, "server.descriptors", std::to_string(jobq::raiseDescriptorLimit()));
  jobq::widenWaitTable();
  jobq::SystemClock clock;
  const jobq::SystemWallClock wall;
  SignalledStop stop(signals);
  jobq::StorageWait wait(clock, log, stop);
  jobq::Application application(config, clock, log, jobq::unwrapped, &wall, options.resetAdminKey ? nullptr : &wait);
  if (options.resetAdminKey) {
    application.resetAdminKey();
    return 0;
  }
  jobq::ClockKeeper clockKeeper(clock, log);
  clockKeeper.start();
  jobq::HeapKeeper heapKeeper(clock, log);
  heapKeeper.start();
  application.start();
  jobq::ProcessSignals::tameWriteSignals();
  while (signals.await() == SIGHUP) application.reload();
  log.write(jobq::LogLevel::information, "server.stopping", "running jobs get server.drain to finish");
  const bool clean = application.stop();
  heapKeeper.stop();
  clockKeeper.stop();
  log.write(jobq::LogLevel::information, "server.stopped", "all accepted jobs are stored");
  if (!clean) ::_exit(0);  // the thread of a handler still runs in code about to be torn down
  return 0;
}

// The error message for a setting refused by a part of the server names the place of the setting, like the message for
// a setting refused by the reader.
int serve(const Options& options) {
  const jobq::Config config = jobq::loadConfig(options.config, options.settings);
  try {
    return serve(options, config);
  } catch (const jobq::ConfigError& error) {
    throw jobq::ConfigError(config.places.placed(error.what()));
  }
}

void printFault(std::string_view text) {
  jobq::eachLine(text, [](std::string_view line) { std::cerr << "jobqd: " << line << "\n"; });
}

int run(int argc, char** argv) {
  try {
    const auto options = readOptions(argc, argv);
    return options ? serve(*options) : 0;
  } catch (const jobq::StoppedBeforeStart&) {
    return 0;
  } catch (const Poco::Exception& error) {
    printFault(error.displayText());
  } catch (const std::exception& error) {
    printFault(error.what());
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) { jobq::leaveProcess(run(argc, argv)); }
