// The whole server in the test's process, with configuration, plugins, storage and HTTP, on a clock moved by hand.
#pragma once

#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/StreamCopier.h>
#include <Poco/URI.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>

#include "core/application.h"
#include "core/base/data_dir.h"
#include "jobq/json.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"

namespace jobq {

struct Answer {
  int status = 0;
  std::string body;
  std::map<std::string, std::string> headers;

  std::string field(const std::string& key) const {
    const auto document = json::read(body);
    if (!std::holds_alternative<json::Document>(document)) return "not JSON: " + body;
    const auto value = std::get<json::Document>(document).find(key);
    if (!value) return "absent";
    return value->kind == json::Kind::string ? json::decode(value->raw) : std::string(value->raw);
  }
};

/// Sends a request to the server at `address`, with `extra` header fields. Returns the answer.
inline Answer callAt(const std::string& address, const std::string& key, const std::string& method,
                     const std::string& target, const std::string& body = "",
                     const std::map<std::string, std::string>& extra = {}) {
  const Poco::URI uri(address);
  Poco::Net::HTTPClientSession session(uri.getHost(), uri.getPort());
  Poco::Net::HTTPRequest request(method, target, "HTTP/1.1");
  request.set("Authorization", "Bearer " + key);
  for (const auto& [name, value] : extra) request.set(name, value);
  request.setContentLength(static_cast<std::streamsize>(body.size()));
  session.sendRequest(request) << body;
  Poco::Net::HTTPResponse response;
  Answer answer;
  Poco::StreamCopier::copyToString(session.receiveResponse(response), answer.body);
  answer.status = response.getStatus();
  for (const auto& [name, value] : response) answer.headers[name] = value;
  return answer;
}

class ServerTest : public testing::Test {
 protected:
  ~ServerTest() override {
    const testkit::HangGuard guard("the server of the test to stop");
    application_.reset();
  }

  void open(const std::string& settings) {
    std::ofstream(dir_ / "jobq.properties") << withDefaults(settings);
    application_.reset();
    application_ = std::make_unique<Application>(loadConfig(dir_ / "jobq.properties", {}), clock_, log_);
    application_->start();
    key_ = *readFile(dir_ / "jobq-data/admin.key");
    key_.pop_back();
  }

  // Returns the settings with the fixture's defaults for absent keys: the file must contain each key once.
  static std::string withDefaults(const std::string& settings) {
    constexpr std::pair<const char*, const char*> kDefaults[] = {{"server.port", "0"},
                                                                 {"server.drain", "10s"},
                                                                 {"limits.enabled", "false"},
                                                                 {"limits.queue", "false"},
                                                                 {"plugins.path", JOBQ_PLUGIN_DIR}};
    std::string text = "\n" + settings + "\n";
    for (const auto& [key, value] : kDefaults) {
      const std::string line = "\n" + std::string(key) + " = ";
      if (text.find(line) == std::string::npos) text += line + value + "\n";
    }
    return text;
  }

  Answer call(const std::string& method, const std::string& target, const std::string& body = "") const {
    return callWith(key_, method, target, body);
  }
  Answer callWith(const std::string& key, const std::string& method, const std::string& target,
                  const std::string& body = "") const {
    return callAt(application_->address(), key, method, target, body, extra_);
  }
  Answer run(const std::string& endpoint, const std::string& body) const {
    return call("POST", "/v2/" + endpoint + "/run", body);
  }
  Answer status(const std::string& endpoint, const std::string& id) const {
    return call("GET", "/v2/" + endpoint + "/status/" + id);
  }

  /// Waits until the job has the state; the server's clock stands still meanwhile.
  void awaitState(const std::string& endpoint, const std::string& id, const std::string& state) const {
    testkit::waitFor("job " + id + " of " + endpoint + " to be " + state,
                     [&] { return status(endpoint, id).field("status") == state; });
  }
  /// Waits until /health of the endpoint contains the text; the server's clock stands still meanwhile.
  void awaitHealth(const std::string& endpoint, const std::string& text) const {
    testkit::waitFor("/health of " + endpoint + " to say " + text,
                     [&] { return call("GET", "/v2/" + endpoint + "/health").body.find(text) != std::string::npos; });
  }

  const testkit::TemporaryFolder dir_;
  testkit::ManualClock clock_;
  testkit::SilentLog log_;
  std::unique_ptr<Application> application_;
  std::string key_;
  std::map<std::string, std::string> extra_;  ///< header fields of every call
};

}  // namespace jobq
