#include "core/http/transport/connection.h"

#include <Poco/Net/HTTPRequestHandler.h>
#include <Poco/Net/HTTPRequestHandlerFactory.h>

#include "core/http/api/error_response.h"
#include "core/http/transport/message.h"

namespace jobq {
namespace {

ApiResponse noHeadMemory() {
  return unavailable("", "too many heads over 8 KB are on their way: send a shorter one, or try again in a moment");
}

}  // namespace

Connection::Ready Connection::receive() {
  while (head_ == HeadScanner::State::incomplete) {
    const auto got = buffer_.fill(*stream_, ByteStream::Wait::no);
    if (!got) return Ready::no;
    if (buffer_.full()) return Ready::yes;
    // Half a head and then the end deserves no answer: nobody asked anything yet.
    if (*got == 0) return Ready::gone;
    head_ = scanner_.scan(buffer_.view());
  }
  return Ready::yes;
}

// False: there is no head to serve now.
bool Connection::awaitHead() {
  // What came behind the last request.
  if (buffer_.full()) return true;
  if (head_ == HeadScanner::State::incomplete && !buffer_.empty()) head_ = scanner_.scan(buffer_.view());
  while (head_ == HeadScanner::State::incomplete) {
    // Who has sent half a head may send the rest at leisure, but not on a thread's time.
    const bool wait = buffer_.empty() && !server_.crowded && !server_.parting;
    const auto got = buffer_.fill(*stream_, wait ? ByteStream::Wait::linger : ByteStream::Wait::no);
    if (buffer_.full()) return true;
    gone_ = got && *got == 0;
    if (!got || gone_) return false;
    head_ = scanner_.scan(buffer_.view());
  }
  return true;
}

Connection::Next Connection::serve() {
  if (handshaking()) {
    const Ready ready = receive();
    if (ready != Ready::yes) return ready == Ready::no ? Next::resume : Next::close;
  }
  while (awaitHead()) {
    const Next next = serveOne();
    if (next != Next::park) return next;
    scanner_.restart();
    head_ = HeadScanner::State::incomplete;
  }
  return gone_ ? Next::close : Next::park;
}

Connection::Next Connection::serveOne() {
  if (buffer_.full()) return refuse(noHeadMemory(), false);
  auto parsed = parseHead(
      buffer_.view().substr(0, head_ == HeadScanner::State::complete ? scanner_.size() : std::string_view::npos));
  if (const auto* fault = std::get_if<Fault>(&parsed)) {
    return refuse(errorResponse("", fault->status, fault->sentence), false);
  }
  const auto& head = std::get<RequestHead>(parsed);
  // The request copies the fields, and the call its target: together at most twice the head.
  Budget::Reservation copies;
  if (scanner_.size() > ReadBuffer::kFree && !copies.grow(server_.heads, 2 * scanner_.size())) {
    return refuse(noHeadMemory(), false);
  }
  ServerResponse response(*stream_, head.method == "HEAD", head.http10, server_.readers, server_.parting);
  if (!head.keepAlive) response.closeAfter();
  ServerRequest request({*stream_, buffer_, server_.waiting, server_.watch, id_, server_.params}, head, response);
  // The views of the head end here; request has its own copies.
  buffer_.consume(scanner_.size());
  buffer_.shrink();
  const std::unique_ptr<Poco::Net::HTTPRequestHandler> handler(server_.handlers.createRequestHandler(request));
  if (!handler) return Next::close;
  handler->handleRequest(request, response);
  response.finish();
  if (!response.sent() || !response.delivered()) return Next::close;
  return response.closes() || !request.bodyPassed() ? afterLast() : Next::park;
}

// A client that is still sending would see a reset instead of the answer if the server just closed (libraries.md 1a).
Connection::Next Connection::afterLast() {
  stream_->endSending();
  buffer_.clear();
  return Next::drain;
}

Connection::Next Connection::refuse(const ApiResponse& reply, bool hurried) {
  ServerResponse response(*stream_, false, false, server_.readers, server_.parting);
  if (hurried) response.hurry();
  response.closeAfter();
  response.setStatusAndReason(static_cast<Poco::Net::HTTPResponse::HTTPStatus>(reply.status));
  response.setContentType("application/json");
  for (const auto& [name, value] : reply.headers) response.set(name, value);
  response.sendBuffer(reply.body.data(), reply.body.size());
  return response.delivered() ? afterLast() : Next::close;
}

Connection::Next Connection::refuseLateHead() {
  if (handshaking()) return Next::close;
  return refuse(errorResponse("", 408, "the request's head did not come in time: send it within 10 seconds"), true);
}

}  // namespace jobq
