// Plugin `webhook_http`: webhooks as POST over HTTP and HTTPS. A single call is made by `delivery.h`.
#include <filesystem>
#include <stop_token>
#include <string>
#include <string_view>

#include "delivery.h"
#include "http_client/authorities.h"
#include "http_client/transfer_loop.h"
#include "jobq/abi.h"
#include "jobq/webhook_transport.h"

namespace {

using namespace jobq;

constexpr const char* kCaSetting = "webhook.http.ca";

/// Calls share the thread of the loop, and connections that the loop keeps.
class HttpTransport final : public WebhookTransport {
 public:
  struct Options {
    explicit Options(const PluginConfig& config)
        : ca(config.text("ca", "",
                         "a PEM file of certificate authorities trusted besides the system's; relative to "
                         "the data directory")) {
      // `jobqd --check` runs only this constructor. The base of a relative path is known only when the transport is
      // created.
      if (std::filesystem::path(ca).is_absolute()) (void)http_client::readAuthorities(ca, kCaSetting);
    }
    std::string ca;
  };

  explicit HttpTransport(const PluginEnv& env) : loop_({env.allowPrivateAddresses, authorities(env)}, "webhook-http") {}

  std::string_view schemes() const override { return "http https"; }
  DeliveryResult deliver(const WebhookCall& call, std::stop_token stop) override {
    return webhook_http::deliver(loop_, call, stop);
  }

 private:
  static std::string authorities(const PluginEnv& env) {
    const Options options(env.config);
    return options.ca.empty() ? "" : http_client::readAuthorities(env.dataDir / options.ca, kCaSetting);
  }

  http_client::TransferLoop loop_;
};

constexpr abi::Entry kEntries[] = {abi::entry<WebhookTransport, HttpTransport>("http", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
