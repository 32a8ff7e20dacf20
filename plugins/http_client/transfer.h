// The outbound HTTP of the plugins: one transfer, bounded in time and memory, ended by a stop, and connected to
// permitted addresses only (`jobq/net_guard.h`), redirects included. A transfer uses no proxy, no cookies, no stored
// credentials and no shared connection, and over https TLS 1.2 or newer with a certificate that an authority vouches
// for. Reading order: this header, `transfer.cpp` (redirects), `exchange.cpp` (one request and the options of libcurl).
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "address_guard.h"
#include "header_fields.h"
#include "incoming_answer.h"
#include "jobq/time.h"

namespace jobq::http_client {

enum class Method { get, post, put };

/// Signs the request for S3 with AWS SigV4. The viewed texts outlive the transfer.
struct AwsSignature {
  std::string_view accessId;
  std::string_view accessSecret;
  std::string_view region;  ///< [a-z0-9-]+
};

/// A request and the policy of its caller. The viewed texts outlive the transfer.
struct Request {
  std::string url;
  Method method = Method::get;
  std::string_view body;  ///< sent with post and put
  Headers headers;        ///< besides those of the transfer; without a Content-Type none is sent
  std::string userAgent;
  std::string_view peer = "server";            ///< the noun for the other side in reasons
  Millis timeout{0};                           ///< bound of the whole transfer, redirects included; at least 1 ms
  BodyBounds bodyBounds;                       ///< of the answer
  int maxRedirects = 0;                        ///< 0: a redirect is an answer; never set together with `signature`
  bool allowPrivate = false;                   ///< the setting `net.allowPrivate`
  std::string_view authorities;                ///< PEM; trusted besides the system's authorities; may be empty
  std::optional<AwsSignature> signature = {};  ///< without one the request is not signed
};

enum class FaultKind {
  badUrl,
  badHeader,
  stopped,           ///< by the stop token or the CancelCheck
  late,              ///< the timeout elapsed
  addressRefused,    ///< by the address guard; Fault::refused is set
  bodyTooLarge,      ///< beyond BodyBounds::kept
  tooManyRedirects,  ///< beyond Request::maxRedirects
  badRedirect,       ///< to something other than an http or https URL with a host
  outOfMemory,
  machine,  ///< a lack of this machine kept the request from the server; Fault::error is set
  other,
};

/// The failure of a transfer.
struct Fault {
  FaultKind kind = FaultKind::other;
  std::string reason;  ///< a clause; names neither the URL, a header's value, nor a user's name: reasons are logged
  std::optional<RefusedAddress> refused = {};
  int error = 0;  ///< of the system, for the kind `machine`
};

/// The result of a transfer. Without a fault the answer is complete up to its bounds. With a fault the answer has the
/// part received before: with a status other than 0 the head is whole.
struct Outcome {
  Answer answer;
  std::string redirectHost;  ///< the host to which a redirect leads that was not followed; empty without one
  std::optional<Fault> fault;
};

/// A condition for the end of a transfer, beside the stop token: such as a deadline on a clock of the caller.
class CancelCheck {
 public:
  /// Returns true if the transfer has to end. Called on the thread of the transfer, every 50 ms or more often. Any
  /// exception ends the transfer and passes through transfer().
  virtual bool isOver() = 0;

 protected:
  ~CancelCheck() = default;
};

/// Runs the transfer and blocks until its end. Any thread, many transfers at once. Ends within 100 ms after a request
/// on `stop`. Throws std::bad_alloc and any exception of `check`; every other failure is a Fault.
///
/// With maxRedirects > 0, answers 301, 302, 303, 307 and 308 with a Location are followed. 307 and 308 keep the method
/// and the body; 301, 302 and 303 continue with a GET. Authorization and Cookie are left out from the first redirect to
/// another scheme, host or port on.
Outcome transfer(Request request, const std::stop_token& stop, CancelCheck* check = nullptr);

/// Does the same, and tries again each second while this machine lacks something (FaultKind::machine), up to the
/// timeout of the request, beyond which the fault is returned. After a redirect only the request to its target is made
/// again. The last try has the whole timeout again.
Outcome transferPatiently(Request request, const std::stop_token& stop, CancelCheck* check = nullptr);

/// Prepares libcurl for the process. Called before the first transfer, which otherwise prepares libcurl itself. Any
/// thread. Throws Error if libcurl does not start.
void prepareTransfers();

/// Returns the clause for an answer whose status the caller takes for a failure: "the receiver answered 404", and for a
/// redirect that was not followed its host. Pure.
std::string reasonOfStatus(const Outcome& outcome, std::string_view peer);

/// Returns a duration such as "10 s" or "300 ms". Pure.
std::string inWords(Millis time);

}  // namespace jobq::http_client
