// Plugin `webhook_http`: webhooks as POST over HTTP and HTTPS. A single call is made by `delivery.h`.
#include <exception>
#include <filesystem>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "delivery.h"
#include "http_client/authorities.h"
#include "http_client/transfer_loop.h"
#include "jobq/abi.h"
#include "jobq/mutex.h"
#include "jobq/webhook_transport.h"

namespace {

using namespace jobq;

constexpr const char* kCaSetting = "webhook.http.ca";

/// The end of a call for which a thread waits.
class AwaitedEnd final : public DeliveryReceiver {
 public:
  void ended(DeliveryResult result) noexcept override { note(std::move(result), nullptr); }
  void failed(std::exception_ptr fault) noexcept override { note(DeliveryFailed{}, std::move(fault)); }

  DeliveryResult await() {
    Lock lock(mutex_);
    while (!result_) hasEnded_.wait(mutex_);
    if (fault_) std::rethrow_exception(fault_);
    return std::move(*result_);
  }

 private:
  void note(DeliveryResult result, std::exception_ptr fault) noexcept {
    Lock lock(mutex_);
    result_ = std::move(result);
    fault_ = std::move(fault);
    hasEnded_.notifyAll();  // under the lock: the waiting thread destroys the object
  }

  Mutex mutex_;
  Condition hasEnded_;
  std::optional<DeliveryResult> result_ JOBQ_GUARDED_BY(mutex_);
  std::exception_ptr fault_ JOBQ_GUARDED_BY(mutex_);
};

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
    AwaitedEnd end;
    webhook_http::begin(loop_, call, std::move(stop), end);
    return end.await();
  }

 private:
  bool begin(const WebhookCall& call, std::stop_token stop, DeliveryReceiver& receiver) override {
    webhook_http::begin(loop_, call, std::move(stop), receiver);
    return true;
  }
  static std::string authorities(const PluginEnv& env) {
    const Options options(env.config);
    return options.ca.empty() ? "" : http_client::readAuthorities(env.dataDir / options.ca, kCaSetting);
  }

  http_client::TransferLoop loop_;
};

constexpr abi::Entry kEntries[] = {abi::entry<WebhookTransport, HttpTransport>("http", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
