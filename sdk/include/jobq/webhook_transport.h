// Contract of the webhook delivery stage: a transport makes one attempt to tell a receiver about the end of a job. The
// WebhookDispatcher of the server repeats failed attempts.
#pragma once

#include <exception>
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

/// A call of a receiver.
struct WebhookCall {
  std::string url;  ///< absolute; the scheme of the URL selected this transport
  /// Names and values of header fields, each name once. The transport sends the fields in addition to its own (content
  /// type, length, host, connection).
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;        ///< JSON text (application/json), sent byte for byte, because the bytes are signed
  Millis timeout{10'000};  ///< limit of the whole call, from the connection to the last byte
};

/// Success of an attempt. `reply` has at most the first 1 KiB of the answer's body, as the bytes came, not always
/// UTF-8.
struct Delivered {
  int status = 0;  ///< 2xx; 200 from a transport without statuses
  std::string reply;
};
/// Failure of an attempt. `status` is 0 if no answer came. `reply` is as in Delivered.
struct DeliveryFailed {
  /// A clause in plain words, for logs and lists, without the URL, values of headers and secrets.
  std::string reason;
  int status = 0;
  std::string reply;
};
using DeliveryResult = std::variant<Delivered, DeliveryFailed>;

/// Receives the end of a call that WebhookTransport::begin() has begun. The server implements the interface.
class DeliveryReceiver {
 public:
  /// Called once for each such call, on any thread, also before begin() returns. Returns soon and calls no method of
  /// the transport. The call and the receiver may be gone when the function returns.
  virtual void ended(DeliveryResult result) noexcept = 0;

  /// Called instead of ended() for an exception that deliver() may throw.
  virtual void failed(std::exception_ptr fault) noexcept = 0;

 protected:
  ~DeliveryReceiver() = default;
};

/// A webhook plugin; each call of deliver() or begin() makes one attempt. Any thread may call, many calls at once. The
/// conformance suite sdk/testkit/transport_suite.h checks this contract for each transport.
class JOBQ_VISIBLE WebhookTransport : public Plugin {
 public:
  static constexpr PluginKind kKind = PluginKind::webhookTransport;

  /// Returns the URL schemes of the transport in lower case, separated by blanks: "http https". The view is valid as
  /// long as the transport.
  virtual std::string_view schemes() const = 0;
  /// Makes one attempt. Blocks until the receiver has answered, until `call.timeout` has elapsed, or until 100 ms after
  /// a request on `stop`. Delivered means that the receiver has accepted the call, and the server does not repeat the
  /// call. After DeliveryFailed the receiver may have the call too. Failures of the receiver and of a malformed URL are
  /// a DeliveryFailed, never an exception. Throws only std::bad_alloc, and std::system_error for a lack of this machine
  /// that kept the call from the receiver (jobq/machine_fault.h): the server counts no try, and calls again in a
  /// second.
  [[nodiscard]] virtual DeliveryResult deliver(const WebhookCall& call, std::stop_token stop) = 0;

  /// Begins the attempt that deliver() makes, and returns true without a wait for the receiver; `receiver` gets the
  /// result. A call then needs no thread of the server, which makes up to 512 calls at once. `call` and `receiver` stay
  /// valid until then. Returns false and does nothing if the transport cannot wait without a thread, as the default
  /// implementation does: the server calls deliver() instead. Throws only std::bad_alloc; the attempt has not begun
  /// then.
  [[nodiscard]] virtual bool begin(const WebhookCall& /*call*/, std::stop_token /*stop*/,
                                   DeliveryReceiver& /*receiver*/) {
    return false;
  }
};

}  // namespace jobq
