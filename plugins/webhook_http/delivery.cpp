#include "delivery.h"

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "http_client/transfer.h"

namespace jobq::webhook_http {

namespace {

constexpr const char* kPeer = "receiver";
constexpr std::size_t kMaxReplyBytes = 1024;  // the bound of `jobq/webhook_transport.h`
// Bytes of the body after which the rest is not awaited: the status stands, and a receiver that sends a huge answer
// gets no further time.
constexpr std::size_t kEnoughBody = 64 * 1024;

http_client::Request requestOf(const WebhookCall& call) {
  http_client::Request request;
  request.url = call.url;
  request.method = http_client::Method::post;
  request.body = call.body;
  request.headers = call.headers;
  if (!http_client::hasHeader(request.headers, "Content-Type")) {
    request.headers.emplace_back("Content-Type", "application/json");
  }
  request.userAgent = "jobq-webhook/1";
  request.peer = kPeer;
  request.timeout = call.timeout;
  request.bodyBounds = {kMaxReplyBytes, kEnoughBody};
  return request;
}

// Throws for a fault of this machine: the receiver has not got the call.
std::string reasonOf(const http_client::Fault& fault) {
  if (fault.kind == http_client::FaultKind::outOfMemory) throw std::bad_alloc();
  if (fault.kind == http_client::FaultKind::machine) {
    throw std::system_error(fault.error, std::generic_category(), "no connection can be opened");
  }
  return fault.kind == http_client::FaultKind::stopped ? "the delivery was stopped before an answer came"
                                                       : fault.reason;
}

// Returns whether an answer tells where its body ends. Otherwise the end of the connection is the end of the body, and
// a receiver may wait for the caller to close the connection.
bool hasLength(const http_client::Answer& answer) {
  return answer.headers.count("content-length") != 0 || answer.headers.count("transfer-encoding") != 0;
}

DeliveryResult resultOf(const WebhookCall& call, http_client::Outcome outcome) {
  const int status = outcome.answer.status;
  std::string& reply = outcome.answer.body;
  if (status == 0) return DeliveryFailed{reasonOf(outcome.fault.value()), 0, {}};
  if (status / 100 != 2) return DeliveryFailed{http_client::reasonOfStatus(outcome, kPeer), status, std::move(reply)};
  const bool isLate = outcome.fault && outcome.fault->kind == http_client::FaultKind::late;
  if (!isLate || !hasLength(outcome.answer)) {
    return Delivered{status, std::move(reply)};
  }
  return DeliveryFailed{"the receiver answered " + std::to_string(status) + ", but not completely within " +
                            http_client::inWords(call.timeout),
                        status, std::move(reply)};
}

/// A call from its begin to its end, when the object destroys itself.
class OngoingCall final : public http_client::TransferReceiver {
 public:
  OngoingCall(const WebhookCall& call, DeliveryReceiver& receiver) : call_(call), receiver_(receiver) {}

  void ended(http_client::Outcome outcome) noexcept override {
    const std::unique_ptr<OngoingCall> self(this);
    DeliveryResult result = DeliveryFailed{};
    std::exception_ptr fault;
    try {
      result = resultOf(call_, std::move(outcome));
    } catch (const std::exception&) {
      fault = std::current_exception();
    }
    // The handler above is over: the thread that waits for the end gets the only reference to the exception.
    if (fault) return receiver_.failed(std::move(fault));
    receiver_.ended(std::move(result));
  }

 private:
  const WebhookCall& call_;
  DeliveryReceiver& receiver_;
};

}  // namespace

void begin(http_client::TransferLoop& loop, const WebhookCall& call, std::stop_token stop, DeliveryReceiver& receiver) {
  auto ongoing = std::make_unique<OngoingCall>(call, receiver);
  loop.begin(requestOf(call), std::move(stop), *ongoing);
  (void)ongoing.release();  // owned by itself since begin() has returned without an exception
}

}  // namespace jobq::webhook_http
