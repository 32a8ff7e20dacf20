// Plugin `webhook_file`: webhooks as lines in files, for development, tests, and machines without a network. The
// setting `webhook.transports = http, file` selects the plugin; `file:///NAME` then adds a line to NAME in the folder
// `webhook.file.dir`.
#include "call_line.h"
#include "jobq/abi.h"
#include "jobq/webhook_transport.h"
#include "line_folder.h"

namespace {

using namespace jobq;

class FileTransport final : public WebhookTransport {
 public:
  struct Options {
    explicit Options(const PluginConfig& config)
        : dir(config.text("dir", "webhooks",
                          "the folder of the files; relative to the data directory, created if it is missing")) {}
    std::string dir;
  };

  explicit FileTransport(const PluginEnv& env) : folder_(env.dataDir / Options(env.config).dir) {}

  std::string_view schemes() const override { return "file"; }

  // The timeout of the call is meant for slow receivers. A hanging disk cannot be abandoned, so the timeout is not
  // used.
  DeliveryResult deliver(const WebhookCall& call, std::stop_token stop) override {
    const auto name = webhook_file::fileNameOf(call.url);
    if (!name) return DeliveryFailed{"the URL is not file:///NAME with a name of letters, digits, _ - and .", 0, {}};
    if (stop.stop_requested()) return DeliveryFailed{"the delivery was stopped before the line was written", 0, {}};
    auto reason = folder_.append(std::string(*name), webhook_file::lineOf(call));
    if (reason) return DeliveryFailed{*std::move(reason), 0, {}};
    return Delivered{200, {}};
  }

 private:
  webhook_file::LineFolder folder_;
};

constexpr abi::Entry kEntries[] = {abi::entry<WebhookTransport, FileTransport>("file", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
