// Fixture for the transport `http` without a server.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>

#include "jobq/plugin.h"
#include "jobq/time.h"
#include "jobq/webhook_transport.h"
#include "testkit/loaded_plugin.h"
#include "testkit/manual_clock.h"
#include "testkit/pace.h"
#include "testkit/wait_for.h"

namespace jobq::test {

using Settings = std::map<std::string, std::string, std::less<>>;

inline std::unique_ptr<WebhookTransport> loadTransport(const std::string& name, const Settings& settings,
                                                       const std::filesystem::path& dataDir, bool allowPrivate) {
  static testkit::ManualClock clock;
  static testkit::SilentLog log;
  const testkit::MapConfig config(settings);
  return testkit::loadPlugin<WebhookTransport>(JOBQ_PLUGIN_DIR "/libjobq_webhook_" + name + ".so", name,
                                               PluginEnv{config, clock, log, dataDir, allowPrivate});
}

class WebhookHttp : public testing::Test {
 protected:
  explicit WebhookHttp(bool allowPrivate = true) : transport_(loadTransport("http", {}, ".", allowPrivate)) {}

  DeliveryResult deliver(const WebhookCall& call, std::stop_token stop = {}) {
    return transport_->deliver(call, std::move(stop));
  }
  static WebhookCall callTo(std::string url, Millis timeout = testkit::kHangDeadline) {
    return WebhookCall{std::move(url), {{"webhook-id", "a.1"}}, R"({"id":"a"})", timeout};
  }
  Delivered deliveredTo(const std::string& url, Millis timeout = testkit::kHangDeadline) {
    const DeliveryResult result = deliver(callTo(url, timeout));
    if (const auto* failed = std::get_if<DeliveryFailed>(&result)) {
      ADD_FAILURE() << failed->reason;
      return {};
    }
    return std::get<Delivered>(result);
  }
  DeliveryFailed failureOf(const std::string& url, Millis timeout = testkit::kHangDeadline) {
    const DeliveryResult result = deliver(callTo(url, timeout));
    if (const auto* delivered = std::get_if<Delivered>(&result)) {
      ADD_FAILURE() << "delivered with " << delivered->status;
      return {};
    }
    return std::get<DeliveryFailed>(result);
  }

  std::unique_ptr<WebhookTransport> transport_;
};

/// The transport may connect to no private address.
class WebhookHttpInPublic : public WebhookHttp {
 protected:
  WebhookHttpInPublic() : WebhookHttp(false) {}
};

}  // namespace jobq::test
