#include "core/http/exchange.h"

#include <Poco/Net/HTTPServerRequestImpl.h>
#include <Poco/Net/HTTPServerResponse.h>
#include <Poco/Net/StreamSocket.h>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <istream>
#include <ostream>

#include "core/http/error_reply.h"

namespace jobq {
namespace {

constexpr std::size_t kReadStep = 64UL << 10;
constexpr std::size_t kDropBytes = 256UL << 20;
constexpr std::chrono::milliseconds kDropTime{2'000};

}  // namespace

Reply tooLarge(std::string_view path, std::size_t limit) {
  return errorReply(path, 413, "the body is over the limit of " + std::to_string(limit >> 20) + " MB: send less");
}

bool Exchange::hasBody() const {
  return request_.getChunkedTransferEncoding() || (request_.hasContentLength() && request_.getContentLength64() != 0);
}

std::optional<Reply> Exchange::readBody(Call& call, std::size_t limit) {
  // Without a length there is no body; Poco's stream would wait for one until the client closes.
  if (!hasBody()) {
    bodyRead_ = true;
    return std::nullopt;
  }
  const bool sized = request_.hasContentLength() && !request_.getChunkedTransferEncoding();
  const auto announced = sized ? static_cast<std::size_t>(std::max<Poco::Int64>(request_.getContentLength64(), 0)) : 0;
  std::istream& in = request_.stream();
  std::string& body = call.body;
  body.reserve(announced);
  while (in.good()) {
    const std::size_t had = body.size();
    if (had > limit) return tooLarge(call.path, limit);
    if (sized && had == announced) break;
    const std::size_t step = sized ? std::min(kReadStep, announced - had) : kReadStep;
    body.resize(had + step);
    in.read(body.data() + had, static_cast<std::streamsize>(step));
    body.resize(had + static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad() || (sized && body.size() < announced)) {
    return errorReply(call.path, 400, "the body ended early: " + std::to_string(body.size()) + " bytes came");
  }
  if (body.size() > limit) return tooLarge(call.path, limit);
  bodyRead_ = true;
  return std::nullopt;
}

void Exchange::send(const Reply& reply) {
  // Poco's stream takes a broken chunk for the end of the body: what follows must never become the next request.
  const bool close = (!bodyRead_ && hasBody()) || request_.getChunkedTransferEncoding();
  response_.setStatusAndReason(static_cast<Poco::Net::HTTPResponse::HTTPStatus>(reply.status));
  response_.setContentType("application/json");
  for (const auto& [name, value] : reply.headers) response_.set(name, value);
  if (close) response_.setKeepAlive(false);
  if (!close && request_.getMethod() != "HEAD") {
    response_.sendBuffer(reply.body.data(), reply.body.size());
    return;
  }
  response_.setContentLength64(static_cast<Poco::Int64>(reply.body.size()));
  std::ostream& out = response_.send();
  if (request_.getMethod() != "HEAD") out.write(reply.body.data(), static_cast<std::streamsize>(reply.body.size()));
  out.flush();
  if (close) dropRest();
}

// A client that is still sending sees a reset, not the status, when the server just closes (libraries.md 1a).
void Exchange::dropRest() noexcept {
  const int socket = static_cast<Poco::Net::HTTPServerRequestImpl&>(request_).socket().impl()->sockfd();
  ::shutdown(socket, SHUT_WR);
  const auto end = std::chrono::steady_clock::now() + kDropTime;
  std::string scrap(kReadStep, '\0');
  for (std::size_t dropped = 0; dropped < kDropBytes;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd waiting{socket, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return;
    const ssize_t got = ::recv(socket, scrap.data(), scrap.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    dropped += static_cast<std::size_t>(got);
  }
}

void Exchange::abandon() noexcept { response_.setKeepAlive(false); }

}  // namespace jobq
