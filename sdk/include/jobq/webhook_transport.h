// Room 11 (post room): one attempt to tell the outside about a finished job. Retrying is the courier's business.
#pragma once

#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "jobq/plugin.h"
#include "jobq/time.h"

namespace jobq {

struct WebhookCall {
  std::string url;  ///< absolute; its scheme selected this transport
  /// Sent besides the transport's own (content type, length, host, connection). Each name once.
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;        ///< application/json; its bytes are sent as they are, because they are signed
  Millis timeout{10'000};  ///< for the whole call, connect to last byte
};

/// `reply` is at most the first 1 KiB of the answer's body, as it came: bytes, not always UTF-8.
struct Delivered {
  int status = 0;  ///< 2xx; 200 from a transport whose receivers know no statuses
  std::string reply;
};
/// status is 0 when no answer came.
struct DeliveryFailed {
  std::string reason;  ///< one clause in plain words, for logs and lists: never the URL, a header's value or a secret
  int status = 0;
  std::string reply;
};
using DeliveryResult = std::variant<Delivered, DeliveryFailed>;

/// One attempt a call. Any thread, many calls at once. sdk/testkit/transport_suite.h puts these sentences to a
/// transport.
class JOBQ_VISIBLE WebhookTransport : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::webhookTransport;

  /// The URL schemes it serves, lower case, separated by blanks: "http https".
  virtual std::string_view schemes() const = 0;
  /// Blocks until the receiver has answered, call.timeout is over, or soon (100 ms) after `stop` is requested. What the
  /// receiver does, or a URL that is no URL, is a DeliveryFailed and never an exception; std::bad_alloc may be thrown.
  /// Delivered means that the receiver has taken it: it is not sent again. After DeliveryFailed it may have it too.
  [[nodiscard]] virtual DeliveryResult deliver(const WebhookCall& call, std::stop_token stop) = 0;
};

}  // namespace jobq
