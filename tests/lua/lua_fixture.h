// Handlers and filters of the Lua plugin as the server loads them, over a folder of scripts that lives as long as a
// test.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/admission_filter.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/plugin.h"
#include "jobq/time.h"
#include "testkit/fake_job_context.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/pace.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"

namespace jobq::lua::test {

using testkit::FakeJobContext;

/// Returns all reports of a job in order: `log <line>`, `progress <JSON>`, or a chunk followed by its metrics.
inline std::vector<std::string> reportsOf(const FakeJobContext& context) {
  std::vector<std::string> texts;
  for (const FakeJobContext::Report& report : context.reports()) {
    switch (report.kind) {
      case FakeJobContext::Report::Kind::chunk:
        texts.push_back(report.text + (report.metrics.empty() ? "" : " " + report.metrics));
        break;
      case FakeJobContext::Report::Kind::progress: texts.push_back("progress " + report.text); break;
      case FakeJobContext::Report::Kind::log: texts.push_back("log " + report.text); break;
    }
  }
  return texts;
}

/// A folder of scripts, removed in the destructor.
class Scripts {
 public:
  const std::filesystem::path& folder() const { return folder_.path(); }
  std::filesystem::path file(const std::string& name) const { return folder_ / (name + ".lua"); }
  void write(const std::string& name, std::string_view text) const {
    std::ofstream(file(name), std::ios::binary | std::ios::trunc) << text;
  }
  /// Replaces the file by a new file, as editors do.
  void replace(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / "next", std::ios::binary | std::ios::trunc) << text;
    std::filesystem::rename(folder_ / "next", file(name));
  }

 private:
  testkit::TemporaryFolder folder_;
};

using Settings = std::map<std::string, std::string, std::less<>>;
inline testkit::MapConfig with(Settings settings) { return testkit::MapConfig(std::move(settings)); }

class LuaTest : public testing::Test {
 protected:
  std::unique_ptr<HandlerFactory> handlers(testkit::MapConfig config = {}) { return load<HandlerFactory>(config); }
  std::unique_ptr<AdmissionFilterFactory> filters(testkit::MapConfig config = {}) {
    return load<AdmissionFilterFactory>(config);
  }

  /// Returns the output of one job of a script written for the call, or "FAILED: " and the reason.
  std::string once(const std::string& text, const std::string& input = "{}") {
    scripts.write("once", text);
    FakeJobContext context;
    return outcome(*handlers()->make(envFor("once")), input, context);
  }

  static HandlerEnv envFor(const std::string& script) { return {"the-endpoint", "w1", {{"CITY", "Ulm"}}, script}; }

  static std::string outcome(JobHandler& handler, const std::string& input, JobContext& context) {
    try {
      return handler.run(input, context);
    } catch (const JobFailed& failure) {
      return std::string("FAILED: ") + failure.what();
    }
  }

  struct Verdict {
    std::string text;  ///< "accepted", "rejected: why", "threw: why", or "replaced"
    Replace change;
    Refuse refusal{};
  };
  Verdict review(AdmissionFilter& filter, const std::string& input, const std::string& key = "key-1") const {
    try {
      const Decision decision = filter.review({"the-endpoint", key, input, policy, variables});
      if (const auto* refuse = std::get_if<Refuse>(&decision)) return {"rejected: " + refuse->message, {}, *refuse};
      if (const auto* replace = std::get_if<Replace>(&decision)) return {"replaced", *replace};
      return {"accepted", {}};
    } catch (const std::exception& error) {
      return {std::string("threw: ") + error.what(), {}};
    }
  }

  Scripts scripts;
  testkit::ManualClock clock;
  testkit::RecordingLog log;
  JobPolicy policy;
  std::map<std::string, std::string> variables{{"CITY", "Ulm"}};
  Clock* used = &clock;

 private:
  template <class Factory>
  std::unique_ptr<Factory> load(const testkit::MapConfig& config) {
    const PluginEnv env{config, *used, log, scripts.folder(), false, scripts.folder()};
    return testkit::loadPlugin<Factory>(JOBQ_PLUGIN_DIR "/libjobq_lua.so", "lua", env);
  }
};

/// Runs `work` on a thread with a stack of `size` bytes. Returns the bytes of the stack that were used.
inline std::size_t onStack(std::size_t size, std::function<void()> work) {
  constexpr unsigned char kPaint = 0xa5;
  void* memory = nullptr;
  if (posix_memalign(&memory, 4096, size) != 0) throw std::bad_alloc();
  const std::unique_ptr<void, decltype(&free)> stack(memory, free);
  std::memset(memory, kPaint, size);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory, size);
  pthread_t thread{};
  const auto run = [](void* of) -> void* {
    (*static_cast<std::function<void()>*>(of))();
    return nullptr;
  };
  if (pthread_create(&thread, &attributes, run, &work) != 0) throw std::runtime_error("no thread");
  {
    const testkit::HangGuard guard("the work on a stack of its own", testkit::kWorkDeadline);
    pthread_join(thread, nullptr);  // bounded by the guard
  }
  pthread_attr_destroy(&attributes);
  const auto* bytes = static_cast<const unsigned char*>(memory);
  std::size_t untouched = 0;
  while (untouched < size && bytes[untouched] == kPaint) ++untouched;
  return size - untouched;
}

}  // namespace jobq::lua::test
