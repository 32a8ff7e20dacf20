#include "delivery.h"

#include <cstddef>
#include <utility>

#include "http_client/transfer.h"

namespace jobq::webhook_http {

namespace {

constexpr const char* kPeer = "receiver";
constexpr std::size_t kMaxReplyBytes = 1024;  // the bound of `jobq/webhook_transport.h`
// Bytes of the body after which the rest is not awaited: the status stands, and a receiver that sends a huge answer
// gets no further time.
constexpr std::size_t kEnoughBody = 64 * 1024;

http_client::Request requestOf(const WebhookCall& call, const Terms& terms) {
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
  request.allowPrivate = terms.allowPrivate;
  request.authorities = terms.authorities;
  return request;
}

std::string reasonOf(const http_client::Fault& fault) {
  return fault.kind == http_client::FaultKind::stopped ? "the delivery was stopped before an answer came"
                                                       : fault.reason;
}

}  // namespace

DeliveryResult deliver(const WebhookCall& call, const Terms& terms, const std::stop_token& stop) {
  http_client::Outcome outcome = http_client::transfer(requestOf(call, terms), stop);
  const int status = outcome.answer.status;
  std::string& reply = outcome.answer.body;
  if (status == 0) return DeliveryFailed{reasonOf(outcome.fault.value()), 0, {}};
  if (status / 100 != 2) return DeliveryFailed{http_client::reasonOfStatus(outcome, kPeer), status, std::move(reply)};
  if (!outcome.fault || outcome.fault->kind != http_client::FaultKind::late) {
    return Delivered{status, std::move(reply)};
  }
  return DeliveryFailed{"the receiver answered " + std::to_string(status) + ", but not completely within " +
                            http_client::inWords(call.timeout),
                        status, std::move(reply)};
}

}  // namespace jobq::webhook_http
