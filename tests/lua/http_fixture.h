// Scripts that call http.get and http.post, run by the real plugin without a server.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>

#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/json.h"
#include "jobq/log.h"
#include "jobq/plugin.h"
#include "jobq/time.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/pace.h"
#include "testkit/wait_for.h"
#include "tiny_http.h"

namespace jobq::test {

using Settings = std::map<std::string, std::string, std::less<>>;

/// Returns an answer of status 200 with `body` to each request.
inline TinyHttp::Answer saying(std::string body) {
  return [body](const TinyRequest&, const TinyConnection& client) { client.reply(200, body); };
}

/// A job without a server: stopped by hand.
class HttpJob final : public JobContext {
 public:
  explicit HttpJob(Instant deadline = Instant::max()) : deadline_(deadline) {}

  const JobId& id() const override { return id_; }
  std::uint32_t attempt() const override { return 1; }
  std::stop_token stopToken() const override { return stop_.get_token(); }
  Instant deadline() const override { return deadline_; }
  std::string_view s3Config() const override { return {}; }
  void emit(std::string_view, std::string_view = {}) override {}
  void progress(std::string_view) override {}
  void log(LogLevel, std::string_view) override {}

  void stop() { stop_.request_stop(); }

 private:
  const JobId id_ = "11111111-2222-3333-4444-555555555555-u1";
  const Instant deadline_;
  std::stop_source stop_;
};

class LuaHttp : public testing::Test {
 protected:
  explicit LuaHttp(bool allowPrivate = true) : allowPrivate_(allowPrivate) {
    std::string pattern = (std::filesystem::temp_directory_path() / "jobq-lua-http-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
    configure({});
  }
  ~LuaHttp() override { std::filesystem::remove_all(folder_); }

  /// `http` is on unless the settings say otherwise.
  void configure(Settings settings) {
    settings.try_emplace("http", "true");
    handlers_ = load<HandlerFactory>(settings);
  }

  HandlerFactory& handlers() { return *handlers_; }
  /// A worker for a script: `text` is the body of its function(input, job).
  std::unique_ptr<JobHandler> worker(const std::string& text) {
    return handlers_->make({"lua", "node-1", {}, write("return function(input, job) " + text + " end")});
  }
  /// What the script's function returns, as JSON text.
  std::string run(const std::string& text, const std::string& input = "{}") {
    HttpJob job;
    return worker(text)->run(input, job);
  }
  /// Why the job failed.
  std::string failureOf(const std::string& text, const std::string& input = "{}") {
    HttpJob job;
    return failureOf(*worker(text), input, job);
  }
  static std::string failureOf(JobHandler& worker, const std::string& input, HttpJob& job) {
    try {
      return "(it did not fail: " + worker.run(input, job).substr(0, 200) + ")";
    } catch (const JobFailed& error) {
      return error.what();
    }
  }

  /// What http.get gives: the answer as JSON text, or the fault.
  std::string get(const std::string& url, const std::string& options = "nil") {
    return plain(
        run("local answer, fault = http.get(input.url, " + options + ") return answer or fault", inputOf(url)));
  }
  /// The same, of a post; `body` as Lua writes it.
  std::string post(const std::string& url, const std::string& body, const std::string& options = "nil") {
    return plain(run("local answer, fault = http.post(input.url, " + body + ", " + options + ") return answer or fault",
                     inputOf(url)));
  }
  static std::string inputOf(const std::string& url) { return "{\"url\":" + json::quoted(url) + "}"; }

  std::string write(const std::string& text) {
    const std::string name = "script" + std::to_string(++scripts_);
    std::ofstream(folder_ / (name + ".lua")) << text;
    return name;
  }
  template <class Factory>
  std::unique_ptr<Factory> load(const Settings& settings) {
    const testkit::MapConfig config(settings);
    return testkit::loadPlugin<Factory>(JOBQ_PLUGIN_DIR "/libjobq_lua.so", "lua",
                                        PluginEnv{config, clock_, log_, folder_, allowPrivate_, folder_});
  }

  testkit::ManualClock clock_;

 private:
  static std::string plain(const std::string& output) {
    return output.starts_with('"') ? json::decode(output) : output;
  }

  const bool allowPrivate_;
  testkit::SilentLog log_;
  std::filesystem::path folder_;
  int scripts_ = 0;
  std::unique_ptr<HandlerFactory> handlers_;
};

/// Nothing private may be connected to.
class LuaHttpInPublic : public LuaHttp {
 protected:
  LuaHttpInPublic() : LuaHttp(false) {}
};

}  // namespace jobq::test
