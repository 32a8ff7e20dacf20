#include "core/http/transport/blocking_request.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPServerRequestImpl.h>
#include <Poco/Net/StreamSocket.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <streambuf>

#include "core/http/transport/byte_stream.h"

namespace jobq {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Time between two questions whether the client of a waiting call has left.
constexpr milliseconds kAskSocket{100};
/// Time of a body or an answer without any byte.
constexpr milliseconds kTransferTime{20'000};
/// Bytes of an answer between two checks of its time.
constexpr std::size_t kPiece = 64UL << 10;

/// Bounds of an unread body that is dropped after the answer.
constexpr std::uint64_t kMostDropped = 256UL << 20;
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
  waits_.try_emplace(++lastId_);
  return lastId_;
}

void ThreadWaits::end(std::uint64_t call) noexcept {
  Lock lock(mutex_);
  waits_.erase(call);
}

bool ThreadWaits::await(std::uint64_t call, milliseconds atMost) {
  Lock lock(mutex_);
  Wait& wait = waits_.at(call);
  const auto end = steady_clock::now() + atMost;
  while (!wait.isResumed && steady_clock::now() < end) wait.resumed.waitFor(mutex_, end - steady_clock::now());
  return std::exchange(wait.isResumed, false);
}

void ThreadWaits::resume(std::uint64_t call) noexcept {
  Lock lock(mutex_);
  const auto found = waits_.find(call);
  if (found == waits_.end()) return;
  found->second.isResumed = true;
  found->second.resumed.notifyOne();
}

BlockingRequest::BlockingRequest(Poco::Net::HTTPServerRequest& request, Poco::Net::HTTPServerResponse& response,
                                 ThreadWaits& waits)
    : request_(request), response_(response), waits_(waits), id_(waits.begin()), socket_(socketOf(request)) {}

BlockingRequest::~BlockingRequest() {
  waits_.end(id_);
  if (!isBodyConsumed() && !isCut_) dropUnread();
}

void BlockingRequest::await() {
  const bool hadLeft = hasLeft();
  asksSocket_ = true;
  while (!waits_.await(id_, kAskSocket)) {
    if (!hadLeft && hasLeft()) return;
  }
}

bool BlockingRequest::hasLeft() const noexcept { return asksSocket_ && hasEvent(socket_, POLLRDHUP, milliseconds(0)); }

bool BlockingRequest::isBodyConsumed() const noexcept {
  // After chunks Poco may take a trailer, or the rest of a malformed body, for the next request.
  if (request_.getChunkedTransferEncoding()) return false;
  return !request_.hasContentLength() || taken_ == static_cast<std::uint64_t>(request_.getContentLength64());
}

bool BlockingRequest::isLate(steady_clock::time_point begin, std::uint64_t moved) const noexcept {
  return steady_clock::now() > begin + kTransferTime + std::chrono::seconds(moved / kDemandedPace);
}

// Poco has sent `100 Continue` before.
std::size_t BlockingRequest::readBody(char* to, std::size_t size, std::uint64_t limit) {
  if (!result_) return 0;
  const bool isChunked = request_.getChunkedTransferEncoding();
  const std::uint64_t most = isChunked ? limit - std::min(limit, taken_) : size;
  std::size_t got = 0;
  try {
    // A call reads from the socket at most once, so that the time is checked often.
    std::streambuf& bytes = *request_.stream().rdbuf();
    const bool hasMore = bytes.sgetc() != std::streambuf::traits_type::eof();
    if (hasMore && most == 0) {
      result_ = Fault{413, "the body is over the limit of " + std::to_string(limit) + " bytes: send less"};
    } else if (hasMore) {
      const auto arrived = static_cast<std::uint64_t>(std::max<std::streamsize>(bytes.in_avail(), 1));
      const auto step = static_cast<std::streamsize>(std::min<std::uint64_t>({size, most, arrived}));
      got = static_cast<std::size_t>(bytes.sgetn(to, step));
    } else if (!isChunked && !isBodyConsumed()) {
      result_ = Fault{400, "the body ended early: " + std::to_string(taken_) + " bytes came; send the whole body"};
    }
  } catch (const Poco::TimeoutException&) {
    result_ = Fault{408, "the body did not come in time: " + std::to_string(taken_) + " bytes came; send it faster"};
  } catch (const Poco::Exception&) {
    result_ = Fault{400, "the body ended early: " + std::to_string(taken_) + " bytes came; send the whole body"};
  }
  taken_ += got;
  if (result_ && got > 0 && !isBodyConsumed() && isLate(begin_, taken_)) {
    result_ = Fault{408, "the body did not come in time: " + std::to_string(taken_) +
                             " bytes came; send it faster, or in smaller parts"};
  }
  return result_ ? got : 0;
}

void BlockingRequest::discardBody() {
  if (!isBodyConsumed()) response_.setKeepAlive(false);
}

RequestExtension::Sending BlockingRequest::write(std::ostream& to, std::string_view text) {
  // A response to HEAD has no body, and Poco's stream takes no byte of a body then.
  if (request_.getMethod() == Poco::Net::HTTPRequest::HTTP_HEAD) text = {};
  const auto begin = steady_clock::now();
  for (std::size_t sent = 0; sent < text.size() && to.good() && !isLate(begin, sent);) {
    const std::size_t step = std::min(kPiece, text.size() - sent);
    to.write(text.data() + sent, static_cast<std::streamsize>(step)).flush();
    sent += to.good() ? step : 0;
    if (sent == text.size()) return Sending::sent;
  }
  if (text.empty() && to.flush().good()) return Sending::sent;
  abandon();
  return Sending::broken;
}

RequestExtension::Sending BlockingRequest::sendText(std::string body, std::string_view constant) {
  const std::string_view text = constant.empty() ? std::string_view(body) : constant;
  response_.setChunkedTransferEncoding(false);
  response_.setContentLength64(static_cast<Poco::Int64>(text.size()));
  return write(response_.send(), text);
}

// HTTP/1.0 has no chunks: the end of the connection is the end of the body.
RequestExtension::Sending BlockingRequest::sendPart(std::string part, bool isLast) {
  if (parts_ == nullptr) {
    const bool http10 = request_.getVersion() == Poco::Net::HTTPRequest::HTTP_1_0;
    response_.setChunkedTransferEncoding(!http10);
    if (http10) response_.setKeepAlive(false);
    parts_ = &response_.send();
  }
  const Sending sending = write(*parts_, part);
  if (isLast) parts_ = nullptr;
  return sending;
}

// Poco ends an open body as if it were whole when the response ends, so the connection has to end before.
void BlockingRequest::abandon() noexcept {
  isCut_ = true;
  response_.setKeepAlive(false);
  if (socket_ >= 0 && response_.sent()) ::shutdown(socket_, SHUT_RDWR);
}

void BlockingRequest::dropUnread() noexcept {
  if (socket_ < 0 || !response_.sent() || ::shutdown(socket_, SHUT_WR) != 0) return;
  std::array<char, 16384> piece;
  const auto end = steady_clock::now() + kDropTime;
  for (std::uint64_t dropped = 0; dropped < kMostDropped;) {
    const auto left = std::chrono::ceil<milliseconds>(end - steady_clock::now());
    if (left.count() <= 0 || !hasEvent(socket_, POLLIN, left)) return;
    const ssize_t got = ::recv(socket_, piece.data(), piece.size(), MSG_DONTWAIT);
    if (got <= 0) return;
    dropped += static_cast<std::uint64_t>(got);
  }
}

}  // namespace jobq
