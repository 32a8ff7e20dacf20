// Scripts that call http.get and http.post, run by the real plugin without a server.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "jobq/error.h"
#include "jobq/job_handler.h"
#include "jobq/json.h"
#include "jobq/plugin.h"
#include "testkit/fake_job_context.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/pace.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"
#include "tiny_http.h"

namespace jobq::test {

using Settings = std::map<std::string, std::string, std::less<>>;

using testkit::FakeJobContext;

/// Returns an answer of status 200 with `body` to each request.
inline TinyHttp::Answer saying(std::string body) {
  return [body](const TinyRequest&, const TinyConnection& client) { client.reply(200, body); };
}

class LuaHttp : public testing::Test {
 protected:
  explicit LuaHttp(bool allowPrivate = true) : allowPrivate_(allowPrivate) { configure({}); }

  /// Loads the plugin with `settings`. `http` is on unless the settings say otherwise.
  void configure(Settings settings) {
    settings.try_emplace("http", "true");
    handlers_ = load<HandlerFactory>(settings);
  }

  HandlerFactory& handlers() { return *handlers_; }
  /// Returns a worker for a script. `text`: body of its function(input, job).
  std::unique_ptr<JobHandler> worker(const std::string& text) {
    return handlers_->make({"lua", "node-1", {}, write("return function(input, job) " + text + " end")});
  }
  /// Returns the result of the script's function as JSON text.
  std::string run(const std::string& text, const std::string& input = "{}") {
    FakeJobContext job;
    return worker(text)->run(input, job);
  }
  /// Returns the message of the job's failure.
  std::string failureOf(const std::string& text, const std::string& input = "{}") {
    FakeJobContext job;
    return failureOf(*worker(text), input, job);
  }
  static std::string failureOf(JobHandler& worker, const std::string& input, FakeJobContext& job) {
    try {
      return "(it did not fail: " + worker.run(input, job).substr(0, 200) + ")";
    } catch (const JobFailed& error) {
      return error.what();
    }
  }

  /// Returns the result of http.get: the answer as JSON text, or the fault.
  std::string get(const std::string& url, const std::string& options = "nil") {
    return plain(
        run("local answer, fault = http.get(input.url, " + options + ") return answer or fault", inputOf(url)));
  }
  /// Returns the result of http.post like get(). `body`: an expression of Lua.
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
                                        PluginEnv{config, clock_, log_, folder_.path(), allowPrivate_, folder_.path()});
  }

  testkit::ManualClock clock_;

 private:
  static std::string plain(const std::string& output) {
    return output.starts_with('"') ? json::decode(output) : output;
  }

  const bool allowPrivate_;
  testkit::SilentLog log_;
  const testkit::TemporaryFolder folder_;
  int scripts_ = 0;
  std::unique_ptr<HandlerFactory> handlers_;
};

/// Connections to private addresses are refused.
class LuaHttpInPublic : public LuaHttp {
 protected:
  LuaHttpInPublic() : LuaHttp(false) {}
};

}  // namespace jobq::test
