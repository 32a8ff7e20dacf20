#include "core/http/transport/blocking_request.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPServerRequestImpl.h>
#include <Poco/Net/StreamSocket.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <streambuf>
#include <utility>

namespace jobq {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Time between two questions whether the client of a waiting call has left.
constexpr milliseconds kAskSocket{100};
/// Bytes of an answer between two checks of its time.
constexpr std::size_t kReadPiece = 64UL << 10;
/// Time for an unread body that is dropped after the answer.
constexpr milliseconds kDropTime{2'000};

int socketOf(Poco::Net::HTTPServerRequest& request) {
  auto* const known = dynamic_cast<Poco::Net::HTTPServerRequestImpl*>(&request);
  return known == nullptr ? -1 : known->socket().impl()->sockfd();
}

bool hasEvent(int socket, short events, milliseconds atMost) noexcept {
  pollfd asked{socket, events, 0};
  return socket >= 0 && ::poll(&asked, 1, static_cast<int>(atMost.count())) > 0;
}

}  // namespace

std::uint64_t ThreadWaits::begin() {
  Lock lock(mutex_);
  isResumed_[++lastId_] = false;
  return lastId_;
}

void ThreadWaits::end(std::uint64_t call) noexcept {
  Lock lock(mutex_);
  isResumed_.erase(call);
  changed_.notifyAll();
}

bool ThreadWaits::await(std::uint64_t call, milliseconds atMost) {
  Lock lock(mutex_);
  if (!isResumed_.at(call)) changed_.waitFor(mutex_, atMost);
  return std::exchange(isResumed_.at(call), false);
}

void ThreadWaits::resume(std::uint64_t call) noexcept {
  Lock lock(mutex_);
  if (const auto found = isResumed_.find(call); found != isResumed_.end()) found->second = true;
  changed_.notifyAll();
}

bool ThreadWaits::awaitNone(milliseconds atMost) {
  Lock lock(mutex_);
  const auto end = steady_clock::now() + atMost;
  while (!isResumed_.empty() && steady_clock::now() < end) changed_.waitFor(mutex_, end - steady_clock::now());
  return isResumed_.empty();
}

BlockingRequest::BlockingRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response,
                                 ThreadWaits& waits)
    : request_(request), response_(response), waits_(waits), socket_(socketOf(request)) {}

BlockingRequest::~BlockingRequest() {
  const bool drops = !isBodyConsumed() && response_.sent() && ::shutdown(socket_, SHUT_WR) == 0;
  std::array<char, 16384> dropped;
  const auto end = steady_clock::now() + kDropTime;
  for (auto left = kDropTime; drops && left.count() > 0;
       left = std::chrono::ceil<milliseconds>(end - steady_clock::now())) {
    if (!hasEvent(socket_, POLLIN, left) || ::recv(socket_, dropped.data(), dropped.size(), MSG_DONTWAIT) <= 0) break;
  }
  waits_.end(id_);
}

void BlockingRequest::await() {
  const bool hadLeft = hasLeft();
  asksSocket_ = true;
  while (!waits_.await(id_, kAskSocket) && (hadLeft || !hasLeft())) continue;
}

bool BlockingRequest::hasLeft() const noexcept { return asksSocket_ && hasEvent(socket_, POLLRDHUP, milliseconds(0)); }

bool BlockingRequest::isBodyConsumed() const noexcept {
  // After chunks Poco may take a trailer, or the rest of a malformed body, for the next request.
  if (request_.getChunkedTransferEncoding()) return false;
  return !request_.hasContentLength() || taken_ == static_cast<std::uint64_t>(request_.getContentLength64());
}

// Poco has sent `100 Continue` before.
std::size_t BlockingRequest::readBody(char* to, std::size_t size, std::uint64_t limit) {
  if (!result_ || isBodyConsumed()) return 0;
  const bool isChunked = request_.getChunkedTransferEncoding();
  const std::uint64_t most = isChunked ? limit - std::min(limit, taken_) : size;
  const auto fault = [this](int status, const char* why, const char* remedy) {
    return Fault{status, why + std::to_string(taken_) + " bytes came; send " + remedy};
  };
  std::size_t got = 0;
  try {
    // A call reads from the socket at most once, so that the time is checked often.
    std::streambuf& bytes = *request_.stream().rdbuf();
    const bool hasMore = bytes.sgetc() != std::streambuf::traits_type::eof();
    if (!hasMore && !isChunked) throw Poco::IOException("the stream has ended");
    if (hasMore && deadline_.left().count() == 0) throw Poco::TimeoutException("the client drips");
    if (hasMore && most == 0) {
      result_ = Fault{413, "the body is over the limit of " + std::to_string(limit) + " bytes: send less"};
    } else if (hasMore) {
      const auto arrived = static_cast<std::uint64_t>(std::max<std::streamsize>(bytes.in_avail(), 1));
      const auto step = static_cast<std::streamsize>(std::min<std::uint64_t>({size, most, arrived}));
      got = static_cast<std::size_t>(bytes.sgetn(to, step));
    }
  } catch (const Poco::TimeoutException&) {
    result_ = fault(408, "the body did not come in time: ", "it faster, or in smaller parts");
  } catch (const Poco::Exception&) {
    result_ = fault(400, "the body ended early: ", "the whole body");
  }
  taken_ += got;
  deadline_.moved(got);
  return got;
}

void BlockingRequest::discardBody() {
  if (!isBodyConsumed() || waits_.isClosing) response_.setKeepAlive(false);
}

RequestExtension::Sending BlockingRequest::write(std::ostream& to, std::string_view text) {
  // A response to HEAD has no body, and Poco's stream takes no byte of a body then.
  if (request_.getMethod() == Poco::Net::HTTPRequest::HTTP_HEAD) text = {};
  TransferDeadline deadline(noSlots_);
  do {
    const std::string_view piece = text.substr(0, kReadPiece);
    to.write(piece.data(), static_cast<std::streamsize>(piece.size())).flush();
    text.remove_prefix(piece.size());
    deadline.moved(piece.size());
  } while (!text.empty() && to.good() && deadline.left().count() > 0);
  if (text.empty() && to.good()) return Sending::sent;
  abandon();
  return Sending::broken;
}

RequestExtension::Sending BlockingRequest::sendText(std::string body, std::string_view constant) {
  const std::string_view text = constant.empty() ? std::string_view(body) : constant;
  response_.setContentLength64(static_cast<Poco::Int64>(text.size()));
  return write(response_.send(), text);
}

// HTTP/1.0 has no chunks: Poco then ends the connection at the end of the body.
RequestExtension::Sending BlockingRequest::sendPart(std::string part, bool) {
  if (parts_ == nullptr) {
    response_.setChunkedTransferEncoding(request_.getVersion() != Poco::Net::HTTPRequest::HTTP_1_0);
    parts_ = &response_.send();
  }
  return write(*parts_, part);
}

// Poco ends an open body as if it were whole when the response ends, so the connection has to end before.
void BlockingRequest::abandon() noexcept {
  response_.setKeepAlive(false);
  if (response_.sent()) ::shutdown(socket_, SHUT_RDWR);
}

}  // namespace jobq
