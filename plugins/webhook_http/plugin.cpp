// Plugin `webhook_http`: webhooks as POST over HTTP and HTTPS, with libcurl. A single call is made by `exchange.h`.
#include <curl/curl.h>

#include "authorities.h"
#include "exchange.h"
#include "jobq/abi.h"
#include "jobq/webhook_transport.h"

namespace {

using namespace jobq;

/// Has no state besides the settings from its creation: calls share nothing else.
class HttpTransport final : public WebhookTransport {
 public:
  struct Options {
    explicit Options(const PluginConfig& config)
        : ca(config.text("ca", "",
                         "a PEM file of certificate authorities trusted besides the system's; relative to "
                         "the data directory")) {
      // `jobqd --check` runs only this constructor. The base of a relative path is known only when the transport is
      // created.
      if (std::filesystem::path(ca).is_absolute()) (void)webhook_http::readAuthorities(ca);
    }
    std::string ca;
  };

  explicit HttpTransport(const PluginEnv& env) : terms_{env.allowPrivateAddresses, {}} {
    const Options options(env.config);
    if (!options.ca.empty()) terms_.authorities = webhook_http::readAuthorities(env.dataDir / options.ca);
    static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
    if (started != CURLE_OK) throw Error(std::string("libcurl does not start: ") + curl_easy_strerror(started));
  }

  std::string_view schemes() const override { return "http https"; }
  DeliveryResult deliver(const WebhookCall& call, std::stop_token stop) override {
    return webhook_http::exchange(call, terms_, std::move(stop));
  }

 private:
  webhook_http::Terms terms_;
};

constexpr abi::Entry kEntries[] = {abi::entry<WebhookTransport, HttpTransport>("http", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
