#include "core/worker_program/worker_options.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/base/ids.h"
#include "core/client/exit_code.h"
#include "core/client/input_text.h"
#include "core/client/table_print.h"
#include "core/model/image.h"
#include "core/model/worker_environment.h"
#include "core/process/program_paths.h"

namespace jobq::worker {
namespace {

using cli::Arguments;
using cli::CommandError;
using cli::ExitCode;
using cli::harmless;
using Environment = std::map<std::string, std::string>;

constexpr std::size_t kNameLetters = 14;
constexpr std::int64_t kMostJobs = 1'000;  // the server hands out no more at once
constexpr Millis kDrain{30'000};
constexpr cli::DurationRange kDrains{Millis(0), Millis(24 * 3'600'000)};
constexpr Millis kPingInterval{10'000};

CommandError wrongUsage(const std::string& sentence) { return {ExitCode::usage, sentence}; }

std::string variableOf(const Environment& environment, const std::string& name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

std::int64_t numberOf(const std::string& subject, const std::string& text, std::int64_t min, std::int64_t max) {
  std::int64_t number = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && at == text.data() + text.size() && number >= min && number <= max) return number;
  throw wrongUsage(subject + " takes a whole number from " + std::to_string(min) + " to " + std::to_string(max) +
                   ", not '" + harmless(text) + "'");
}

std::size_t jobsOf(const Arguments& arguments, const std::string& option, std::size_t fallback) {
  if (!arguments.has(option)) return fallback;
  return static_cast<std::size_t>(numberOf("--" + option, arguments.value(option), 1, kMostJobs));
}

WorkerId readName(const Arguments& arguments, const Environment& environment) {
  WorkerId name = arguments.value("worker", variableOf(environment, "RUNPOD_POD_ID"));
  if (name.empty()) return newName(kNameLetters);
  if (isWorkerName(name)) return name;
  throw wrongUsage("--worker (or RUNPOD_POD_ID) takes a name of 1 to 128 letters, digits and . _ -, not '" +
                   harmless(name) + "'");
}

// Without --endpoint all addresses come from the variables RUNPOD_WEBHOOK_...
CallAddresses readAddresses(const Arguments& arguments, const Environment& environment) {
  const WorkerId name = readName(arguments, environment);
  const std::string ca = arguments.value("ca", variableOf(environment, "JOBQ_CA"));
  if (arguments.has("endpoint")) {
    const std::string known = variableOf(environment, "JOBQ_URL");
    const std::string url = arguments.value("url", known.empty() ? "http://127.0.0.1:8000" : known);
    return CallAddresses::ofEndpoint(url, arguments.value("endpoint"), name, ca);
  }
  const bool hasVariables = std::any_of(environment.begin(), environment.end(), [](const auto& variable) {
    return variable.first.starts_with("RUNPOD_WEBHOOK_");
  });
  if (arguments.has("url") || !hasVariables) {
    throw wrongUsage("--endpoint is missing: name the endpoint whose jobs the worker takes");
  }
  return CallAddresses::ofVariables(environment, name, ca);
}

std::string readKeyFile(const std::string& name) {
  std::string key = cli::readSource(name);
  key.erase(key.find_last_not_of("\r\n ") + 1);
  return key;
}

// The key belongs to the server: the key in the variables is for the addresses in the variables.
std::string readKey(const Arguments& arguments, const Environment& environment) {
  std::string key;
  if (arguments.has("key-file")) {
    key = readKeyFile(arguments.value("key-file"));
  } else if (!arguments.has("endpoint")) {
    key = variableOf(environment, "RUNPOD_AI_API_KEY");
  }
  if (key.empty() && !arguments.has("key-file")) key = variableOf(environment, "JOBQ_KEY");
  cli::checkKey(key);
  return key;
}

HandlerChoice readImage(const Arguments& arguments) {
  const std::string name = arguments.value("image");
  if (name.empty()) throw wrongUsage("--image is missing: name a handler, like plugin/echo or lua/NAME");
  if (const auto checked = checkImageName(name); !checked) {
    throw wrongUsage("--image " + checked.failure().message());
  }
  const Image image = parseImage(name);
  switch (image.kind) {
    case Image::Kind::plugin: return {image.name, ""};
    case Image::Kind::lua: return {"lua", image.name};
    case Image::Kind::remote: break;
  }
  throw wrongUsage("--image takes plugin/NAME or lua/NAME, not '" + harmless(name) + "'");
}

Isolation readIsolation(const Arguments& arguments) {
  const std::string kind = arguments.value("isolation", "thread");
  if (kind == "thread") return Isolation::thread;
  if (kind == "process") return Isolation::process;
  throw wrongUsage("--isolation takes thread or process, not '" + harmless(kind) + "'");
}

Millis readPingInterval(const Environment& environment) {
  const std::string text = variableOf(environment, "RUNPOD_PING_INTERVAL");
  return text.empty() ? kPingInterval : Millis(numberOf("RUNPOD_PING_INTERVAL", text, 100, 60'000));
}

}  // namespace

const std::vector<cli::OptionRow>& workerOptionRows() {
  static const std::vector<cli::OptionRow> kRows{
      {"url", "URL", "the server (JOBQ_URL, else http://127.0.0.1:8000)"},
      {"endpoint", "ENDPOINT", "the endpoint whose jobs are run; without it the variables RUNPOD_WEBHOOK_... tell"},
      {"image", "IMAGE", "the handler: plugin/NAME or lua/NAME"},
      {"key-file", "FILE", "the file with the worker's key (JOBQ_KEY, else RUNPOD_AI_API_KEY)"},
      {"ca", "FILE", "PEM file of authorities for an https server (JOBQ_CA)"},
      {"worker", "NAME", "the name of this process, different for each one (RUNPOD_POD_ID, else a random name)"},
      {"concurrency", "N", "jobs that run at once (1)"},
      {"batch", "N", "most jobs of one call, at most those that can run at once (the same as --concurrency)"},
      {"isolation", "KIND", "where handlers run: thread, or process for a process of its own for each one (thread)"},
      {"drain", "TIME", "time for running jobs to end after SIGTERM (30s)"},
      {"plugins", "FOLDER", "folder of the plugins (the installed ones)"},
      {"scripts", "FOLDER", "folder with handlers/NAME.lua (the installed scripts)"},
      {"set", "KEY=VALUE", "a setting of a plugin, or net.allowPrivate", true},
      {"env", "NAME=VALUE", "a variable of the handler", true},
      {"version", "", "prints the version and ends"},
      {"help", "", "prints this help and ends"},
  };
  return kRows;
}

const std::vector<std::string>& workerVariables() {
  static const std::vector<std::string> kNames{"JOBQ_URL",
                                               "JOBQ_KEY",
                                               "JOBQ_CA",
                                               "RUNPOD_POD_ID",
                                               "RUNPOD_AI_API_KEY",
                                               "RUNPOD_PING_INTERVAL",
                                               "RUNPOD_WEBHOOK_GET_JOB",
                                               "RUNPOD_WEBHOOK_POST_OUTPUT",
                                               "RUNPOD_WEBHOOK_POST_STREAM",
                                               "RUNPOD_WEBHOOK_PING"};
  return kNames;
}

WorkerOptions readOptions(const Arguments& arguments, const Environment& environment) {
  if (!arguments.words.empty()) {
    throw wrongUsage("'" + harmless(arguments.words[0]) + "' is not an option: options begin with --, see --help");
  }
  const std::size_t concurrency = jobsOf(arguments, "concurrency", 1);
  return {readAddresses(arguments, environment),
          readKey(arguments, environment),
          readImage(arguments),
          readIsolation(arguments),
          cli::pairsOf(arguments, "env"),
          concurrency,
          jobsOf(arguments, "batch", concurrency),
          cli::durationOf(arguments, "drain", kDrain, kDrains),
          readPingInterval(environment),
          arguments.value("scripts", defaultScriptFolder().string())};
}

}  // namespace jobq::worker
