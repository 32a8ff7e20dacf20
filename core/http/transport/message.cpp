#include "core/http/transport/message.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPServerParams.h>
#include <Poco/StreamCopier.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <typeinfo>
#include <utility>

namespace jobq {
namespace {

using Poco::Net::SocketAddress;

/// Returns the time as "Sun, 06 Nov 1994 08:49:37 GMT", formatted once a second in each thread.
std::string_view dateNow() {
  thread_local std::time_t made = 0;
  thread_local std::array<char, 32> text{};
  const std::time_t now = std::time(nullptr);
  if (now != made) {
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    std::strftime(text.data(), text.size(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
    made = now;
  }
  return text.data();
}

SocketAddress addressOf(int descriptor, int (*ask)(int, sockaddr*, socklen_t*)) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  auto* address = reinterpret_cast<sockaddr*>(&storage);
  if (ask(descriptor, address, &size) != 0) return {};
  return {address, size};
}

// Bounds the bytes that the kernel takes before it has sent them; 0 is the bound of the system.
void limitUnsent(int descriptor, int bytes) {
  (void)::setsockopt(descriptor, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof bytes);
}

std::string chunkSize(std::size_t size) {
  std::array<char, 24> text{};
  const int length = std::snprintf(text.data(), text.size(), "%zx\r\n", size);
  return {text.data(), static_cast<std::size_t>(length)};
}

}  // namespace

// Collects the written bytes and sends them as chunks; without chunks if the length was announced or the client speaks
// HTTP/1.0.
class ServerResponse::BodyWriter final : public std::streambuf {
 public:
  BodyWriter(const AnswerReader& reader, SlowReaders& readers, bool chunked, bool silent)
      : reader_(reader), readers_(readers), chunked_(chunked), silent_(silent) {
    setp(held_.data(), held_.data() + held_.size());
  }

  bool end() {
    const bool sent = sync() == 0;
    return sent && (!chunked_ || silent_ || send("0\r\n\r\n", ""));
  }

 private:
  int sync() override {
    const std::size_t size = static_cast<std::size_t>(pptr() - pbase());
    const bool sent = size == 0 || put({pbase(), size});
    setp(held_.data(), held_.data() + held_.size());
    return sent ? 0 : -1;
  }
  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
    return traits_type::not_eof(c);
  }
  std::streamsize xsputn(const char* from, std::streamsize size) override {
    if (size <= epptr() - pptr()) return std::streambuf::xsputn(from, size);
    return sync() == 0 && put({from, static_cast<std::size_t>(size)}) ? size : 0;
  }

  bool put(std::string_view text) {
    if (silent_) return true;
    if (!chunked_) return send(text, "");
    std::array<char, 24> size{};
    const int length = std::snprintf(size.data(), size.size(), "%zx\r\n", text.size());
    return send({size.data(), static_cast<std::size_t>(length)}, text) && send("\r\n", "");
  }

  bool send(std::string_view first, std::string_view second) {
    return reader_.stream.write(first, second, TransferDeadline(readers_, reader_));
  }

  const AnswerReader& reader_;
  SlowReaders& readers_;
  const bool chunked_;
  const bool silent_;
  std::array<char, 4096> held_;
};

ServerResponse::ServerResponse(const AnswerReader& reader, SlowReaders& readers, bool toHead, bool http10,
                               const std::atomic<bool>& closing)
    : reader_(reader), stream_(reader.stream), readers_(readers), toHead_(toHead), http10_(http10), closing_(closing) {}

ServerResponse::~ServerResponse() = default;

std::string ServerResponse::head() {
  if (closing_) close_ = true;
  std::string text;
  text.reserve(256);
  text += "HTTP/1.1 ";
  text += std::to_string(static_cast<int>(getStatus()));
  text += ' ';
  text += getReason();
  text += "\r\n";
  for (const auto& [name, value] : *this) {
    if (Poco::icompare(name, CONNECTION) == 0) continue;
    text += name;
    text += ": ";
    text += value;
    text += "\r\n";
  }
  text += "Date: ";
  text += dateNow();
  text += close_ ? "\r\nConnection: close" : http10_ ? "\r\nConnection: keep-alive" : "";
  text += "\r\n\r\n";
  return text;
}

void ServerResponse::put(std::string_view first, std::string_view second, TransferDeadline deadline) {
  delivered_ = delivered_ && stream_.write(first, second, std::move(deadline));
  if (!delivered_) close_ = true;
}

void ServerResponse::sendContinue() { put("HTTP/1.1 100 Continue\r\n\r\n", "", TransferDeadline::hurried()); }

void ServerResponse::beginSized(std::size_t length) {
  setContentLength64(static_cast<Poco::Int64>(length));
  setChunkedTransferEncoding(false);
  sent_ = true;
}

void ServerResponse::sendBuffer(const void* buffer, std::size_t length) {
  beginSized(length);
  put(head(), toHead_ ? std::string_view() : std::string_view(static_cast<const char*>(buffer), length),
      TransferDeadline(readers_, reader_));
}

void ServerResponse::sendAtOnce(std::string_view body) {
  beginSized(body.size());
  put(head(), toHead_ ? std::string_view() : body, TransferDeadline::hurried());
}

// Callers without a key get the constant texts. The copy of the kernel is memory too, and stays small until the end of
// the text.
void ServerResponse::sendText(std::string body, std::string_view constant) {
  beginSized(constant.empty() ? body.size() : constant.size());
  if (toHead_) {
    body.clear();
    constant = {};
  }
  if (!constant.empty()) limitUnsent(stream_.descriptor(), 16 << 10);
  rest_ = Rest{head(), std::move(body), constant, 0, TransferDeadline(readers_, reader_)};
  sendRest();
}

// HTTP/1.0 has no chunks: the end of the connection is the end of the body.
void ServerResponse::sendPart(std::string part, bool isLast) {
  std::string before;
  if (!sent_) {
    if (http10_) close_ = true;
    setChunkedTransferEncoding(!http10_);
    sent_ = true;
    before = head();
  }
  if (!http10_) {
    if (!part.empty()) {  // an empty chunk would end the body
      before += chunkSize(part.size());
      part += "\r\n";
    }
    if (isLast) part += "0\r\n\r\n";
  }
  rest_ = Rest{std::move(before), std::move(part), {}, 0, TransferDeadline(readers_, reader_)};
  sendRest();
}

void ServerResponse::sendRest() {
  Rest& rest = *rest_;
  const std::string_view head = std::string_view(rest.head).substr(std::min(rest.sent, rest.head.size()));
  const std::size_t ofBody = rest.sent - std::min(rest.sent, rest.head.size());
  const auto moved = delivered_ ? stream_.writeSome(head, rest.text().substr(ofBody)) : std::nullopt;
  rest.sent += moved.value_or(0);
  const bool isSent = rest.sent == rest.head.size() + rest.text().size();
  if (!isSent) {
    rest.deadline.moved(moved.value_or(0));
    if (moved && rest.deadline.mayWait() == TransferDeadline::Verdict::wait) return;
    delivered_ = false;
    close_ = true;
  }
  if (!rest.constant.empty()) limitUnsent(stream_.descriptor(), 0);
  rest_.reset();
}

std::ostream& ServerResponse::send() {
  const bool sized = hasContentLength();
  // HTTP/1.0 has no chunks: the end of the connection is the end of the body.
  if (!sized && http10_) close_ = true;
  setChunkedTransferEncoding(!sized && !http10_);
  sent_ = true;
  put(head(), "", TransferDeadline(readers_, reader_));
  writer_ = std::make_unique<BodyWriter>(reader_, readers_, getChunkedTransferEncoding(), toHead_);
  bodyStream_ = std::make_unique<std::ostream>(writer_.get());
  if (!delivered_) bodyStream_->setstate(std::ios::badbit);
  return *bodyStream_;
}

void ServerResponse::finish() {
  if (writer_ == nullptr || !delivered_) return;
  delivered_ = bodyStream_->good() && writer_->end();
  if (!delivered_) close_ = true;
}

void ServerResponse::sendFile(const std::string& path, const std::string& mediaType) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) throw Poco::OpenFileException(path);
  setContentType(mediaType);
  setContentLength64(static_cast<Poco::Int64>(file.tellg()));
  file.seekg(0);
  Poco::StreamCopier::copyStream(file, send());
}

void ServerResponse::redirect(const std::string& uri, HTTPStatus status) {
  setStatusAndReason(status);
  set("Location", uri);
  sendBuffer("", 0);
}

void ServerResponse::requireAuthentication(const std::string& realm) {
  setStatusAndReason(HTTP_UNAUTHORIZED);
  set("WWW-Authenticate", "Basic realm=\"" + realm + "\"");
}

ServerRequest::ServerRequest(const RequestDeps& deps, const RequestHead& head, ServerResponse& response)
    : deps_(deps),
      response_(response),
      body_(deps.stream, deps.buffer, head, deps.waiting),
      bodyStream_(&body_),
      owesContinue_(head.expectsContinue && head.hasBody()),
      client_(deps_) {
  setMethod(std::string(head.method));
  setURI(std::string(head.target));
  setVersion(head.http10 ? HTTP_1_0 : HTTP_1_1);
  for (const auto& [name, value] : head.fields) add(std::string(name), std::string(value));
  // The parser of heads knows all allowed spellings of the coding, Poco one.
  if (head.chunked) setChunkedTransferEncoding(true);
}

// An owned connection may stay idle for hours, and its peer may vanish without a word: the kernel asks after the peer,
// and ends the connection after 25 seconds without an answer.
void RequestClient::setOwner(std::shared_ptr<const ConnectionOwner> owner) noexcept {
  if (!deps_.owner) {
    const int descriptor = deps_.stream.descriptor();
    const int on = 1;
    const int idle = 10;
    const int interval = 5;
    const int probes = 3;
    const int unanswered = 25'000;  // milliseconds
    ::setsockopt(descriptor, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
    ::setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &unanswered, sizeof unanswered);
  }
  if (owner && deps_.owner) owner->noteFormer(*deps_.owner);
  deps_.owner.swap(owner);
  asksSocket_ = true;
}

void RequestClient::endWatch() noexcept {
  if (std::exchange(watched_, false)) deps_.places.unwatch(deps_.call.id);
}

std::istream& ServerRequest::stream() {
  if (owesContinue_) response_.sendContinue();
  owesContinue_ = false;
  return bodyStream_;
}

std::size_t ServerRequest::readBody(char* to, std::size_t size, std::uint64_t limit) {
  body_.limit(limit);
  if (owesContinue_) response_.sendContinue();
  owesContinue_ = false;
  return body_.readOrPause(to, size, deps_.threadsBusy || !deps_.mayBlock);
}

const SocketAddress& ServerRequest::clientAddress() const {
  if (!clientAddress_) clientAddress_ = addressOf(deps_.stream.descriptor(), ::getpeername);
  return *clientAddress_;
}

const SocketAddress& ServerRequest::serverAddress() const {
  if (!serverAddress_) serverAddress_ = addressOf(deps_.stream.descriptor(), ::getsockname);
  return *serverAddress_;
}

std::stop_token RequestClient::disconnected() {
  watched_ = true;
  return deps_.places.watch(deps_.call.id);
}

void ServerRequest::discardBody() {
  // A client that still waits for `100 Continue` may send the body or not, so its next bytes could be either.
  if (owesContinue_ || !body_.dropArrived()) response_.closeAfter();
}

RequestExtension::Sending ServerRequest::sending() const noexcept {
  if (response_.hasRest()) return Sending::waits;
  return response_.delivered() ? Sending::sent : Sending::broken;
}

RequestExtension::Sending ServerRequest::sendText(std::string body, std::string_view constant) {
  response_.sendText(std::move(body), constant);
  return sending();
}

RequestExtension::Sending ServerRequest::sendPart(std::string part, bool isLast) {
  response_.sendPart(std::move(part), isLast);
  return sending();
}

// Most requests are the own ones. A comparison of the type finds them faster than the search of dynamic_cast.
RequestExtension* RequestExtension::of(Poco::Net::HTTPServerRequest& request) noexcept {
  if (typeid(request) == typeid(ServerRequest)) return static_cast<ServerRequest*>(&request);
  return dynamic_cast<RequestExtension*>(&request);
}

}  // namespace jobq
