// Handlers and filters of the Lua plugin as the server loads it, over a folder of scripts that lives as long as a test.
#pragma once

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/admission_filter.h"
#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/plugin.h"
#include "jobq/time.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/pace.h"
#include "testkit/wait_for.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define JOBQ_SANITIZED 1
#else
#define JOBQ_SANITIZED 0
#endif

namespace jobq::lua::test {

/// A job that is run, watched and stopped by hand. Any thread.
class ScriptContext final : public JobContext {
 public:
  explicit ScriptContext(Instant deadline = Instant::max(), std::uint32_t attempt = 1)
      : deadline_(deadline), attempt_(attempt) {}

  const JobId& id() const override { return id_; }
  std::uint32_t attempt() const override { return attempt_; }
  std::stop_token stopToken() const override { return stop_.get_token(); }
  Instant deadline() const override { return deadline_; }
  std::string_view s3Config() const override { return {}; }
  void emit(std::string_view chunk, std::string_view metrics) override {
    keep(std::string(chunk) + (metrics.empty() ? "" : " " + std::string(metrics)));
  }
  void progress(std::string_view json) override { keep("progress " + std::string(json)); }
  void log(LogLevel, std::string_view line) override {
    keep("log " + std::string(line));
    if (onLine) onLine(line);
  }

  void stop() { stop_.request_stop(); }
  /// All that it reported, in order.
  std::vector<std::string> told() const {
    Lock lock(mutex_);
    return told_;
  }

  std::function<void(std::string_view)> onLine;  ///< on the script's thread

 private:
  void keep(std::string text) {
    Lock lock(mutex_);
    told_.push_back(std::move(text));
  }

  const JobId id_ = "11111111-2222-3333-4444-555555555555-u1";
  const Instant deadline_;
  const std::uint32_t attempt_;
  std::stop_source stop_;
  mutable Mutex mutex_;
  std::vector<std::string> told_ JOBQ_GUARDED_BY(mutex_);
};

/// A log that keeps its lines. Any thread.
class KeptLog final : public Log {
 public:
  void write(LogLevel, std::string_view event, std::string_view text) noexcept override {
    Lock lock(mutex_);
    lines_.push_back(std::string(event) + ": " + std::string(text));
  }
  std::vector<std::string> lines() const {
    Lock lock(mutex_);
    return lines_;
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> lines_ JOBQ_GUARDED_BY(mutex_);
};

/// A folder of scripts, removed with it.
class Scripts {
 public:
  Scripts() {
    std::string pattern = (std::filesystem::temp_directory_path() / "jobq-lua-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder for the scripts");
    folder_ = pattern;
  }
  ~Scripts() { std::filesystem::remove_all(folder_); }
  Scripts(const Scripts&) = delete;
  Scripts& operator=(const Scripts&) = delete;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path file(const std::string& name) const { return folder_ / (name + ".lua"); }
  void write(const std::string& name, std::string_view text) const {
    std::ofstream(file(name), std::ios::binary | std::ios::trunc) << text;
  }
  /// As editors do: a new file takes the place of the old one.
  void replace(const std::string& name, std::string_view text) const {
    std::ofstream(folder_ / "next", std::ios::binary | std::ios::trunc) << text;
    std::filesystem::rename(folder_ / "next", file(name));
  }

 private:
  std::filesystem::path folder_;
};

using Settings = std::map<std::string, std::string, std::less<>>;
inline testkit::MapConfig with(Settings settings) { return testkit::MapConfig(std::move(settings)); }

class LuaTest : public testing::Test {
 protected:
  std::unique_ptr<HandlerFactory> handlers(testkit::MapConfig config = {}) { return load<HandlerFactory>(config); }
  std::unique_ptr<AdmissionFilterFactory> filters(testkit::MapConfig config = {}) {
    return load<AdmissionFilterFactory>(config);
  }

  /// The output of one job of a script that is written for it; "FAILED: why" when it fails.
  std::string once(const std::string& text, const std::string& input = "{}") {
    scripts.write("once", text);
    ScriptContext context;
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
  };
  Verdict review(AdmissionFilter& filter, const std::string& input, const std::string& key = "key-1") const {
    try {
      const Admission admission = filter.review({"the-endpoint", key, input, policy, variables});
      if (const auto* reject = std::get_if<Reject>(&admission)) return {"rejected: " + reject->message, {}};
      if (const auto* replace = std::get_if<Replace>(&admission)) return {"replaced", *replace};
      return {"accepted", {}};
    } catch (const std::exception& error) {
      return {std::string("threw: ") + error.what(), {}};
    }
  }

  Scripts scripts;
  testkit::ManualClock clock;
  KeptLog log;
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

/// Runs `work` on a thread with a stack of that size, and says how much of it was used.
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
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  const auto* bytes = static_cast<const unsigned char*>(memory);
  std::size_t untouched = 0;
  while (untouched < size && bytes[untouched] == kPaint) ++untouched;
  return size - untouched;
}

}  // namespace jobq::lua::test
