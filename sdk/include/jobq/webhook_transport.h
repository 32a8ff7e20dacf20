// Room 11 (post room): one attempt to tell the outside about a finished job. Retrying is the courier's business.
#pragma once

#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/plugin.h"

namespace jobq {

struct WebhookCall {
  std::string url;  ///< absolute; its scheme selected this transport
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;        ///< application/json
  Millis timeout{10'000};  ///< for the whole call, connect to last byte
};

/// `reply` is at most the first 1 KiB of the answer.
struct Delivered {
  int status = 0;
  std::string reply;
};
/// status is 0 when no answer came.
struct DeliveryFailed {
  std::string reason;
  int status = 0;
  std::string reply;
};
using DeliveryResult = std::variant<Delivered, DeliveryFailed>;

/// Any thread, many calls at once. Returns soon after `stop` is requested.
class JOBQ_VISIBLE WebhookTransport : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::webhookTransport;

  /// The URL schemes it serves, lower case, separated by blanks: "http https".
  virtual std::string_view schemes() const = 0;
  [[nodiscard]] virtual DeliveryResult deliver(const WebhookCall& call, std::stop_token stop) = 0;
};

}  // namespace jobq
