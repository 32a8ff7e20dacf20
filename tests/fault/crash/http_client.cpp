#include "http_client.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <system_error>

namespace jobq::fault {
namespace {

constexpr int kWaitLimit = 30;  // seconds; longer than any wait of these clients

/// Returns the value of a header in a head whose lines end with CRLF; empty without such a header.
std::optional<std::string_view> valueOf(std::string_view head, std::string_view name) {
  for (std::size_t line = head.find("\r\n"); line != std::string_view::npos; line = head.find("\r\n", line)) {
    line += 2;
    if (head.size() - line <= name.size() || ::strncasecmp(head.data() + line, name.data(), name.size()) != 0) continue;
    std::string_view value = head.substr(line + name.size());
    if (!value.starts_with(':')) continue;
    value.remove_prefix(1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    return value.substr(0, value.find("\r\n"));
  }
  return std::nullopt;
}

std::optional<std::size_t> bodyLength(std::string_view head) {
  const auto value = valueOf(head, "content-length");
  if (!value) return std::nullopt;
  std::size_t length = 0;
  const auto [rest, fault] = std::from_chars(value->data(), value->data() + value->size(), length);
  return fault == std::errc() ? std::optional(length) : std::nullopt;
}

/// Parses `text` into `response`. Returns `answered` for a whole answer, `unknown` for an incomplete answer, else
/// `broken`.
HttpResponse::Fate read(const std::string& text, HttpResponse& response) {
  const std::size_t end = text.find("\r\n\r\n");
  if (end == std::string::npos) return HttpResponse::Fate::unknown;
  const std::string_view head = std::string_view(text).substr(0, end + 2);
  const auto length = bodyLength(head);
  if (!head.starts_with("HTTP/1.1 ") || !length || text.size() > end + 4 + *length) return HttpResponse::Fate::broken;
  if (text.size() < end + 4 + *length) return HttpResponse::Fate::unknown;
  std::from_chars(head.data() + 9, head.data() + 12, response.status);
  response.head = head;
  response.body = text.substr(end + 4);
  return HttpResponse::Fate::answered;
}

}  // namespace

Nanos monotonicNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

std::string HttpResponse::header(std::string_view name) const { return std::string(valueOf(head, name).value_or("")); }

HttpResponse HttpClient::call(std::string_view method, std::string_view path, std::string_view body,
                              std::string_view header) {
  std::string request(method);
  request += ' ';
  request += path;
  request += " HTTP/1.1\r\nHost: jobq\r\nAuthorization: Bearer " + key_ + "\r\n";
  if (method == "POST")
    request += "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n";
  if (!header.empty()) (request += header) += "\r\n";
  request += "\r\n";
  request += body;
  HttpResponse response;
  response.span.asked = monotonicNow();
  if (open()) response.fate = send(request) ? receive(response) : HttpResponse::Fate::unknown;
  response.span.answered = monotonicNow();
  if (response.fate != HttpResponse::Fate::answered) close();
  return response;
}

bool HttpClient::open() {
  if (socket_ >= 0) return true;
  sockaddr_in server{};
  server.sin_family = AF_INET;
  server.sin_port = htons(address_.port);
  if (::inet_pton(AF_INET, address_.host.c_str(), &server.sin_addr) != 1) return false;
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval backoff{kWaitLimit, 0};
  const int on = 1;
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &backoff, sizeof backoff);
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(socket_, reinterpret_cast<const sockaddr*>(&server), sizeof server) == 0) {
    // The system may assign a port just left by its server to the calling socket, and the socket then connects to
    // itself.
    sockaddr_in own{};
    socklen_t size = sizeof own;
    if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size) == 0 && own.sin_port != server.sin_port)
      return true;
  }
  close();
  return false;
}

void HttpClient::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

bool HttpClient::send(std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

HttpResponse::Fate HttpClient::receive(HttpResponse& response) {
  std::string text;
  std::array<char, 8192> buffer;
  for (;;) {
    const ssize_t got = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return HttpResponse::Fate::late;
    if (got <= 0) return HttpResponse::Fate::unknown;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    const HttpResponse::Fate fate = read(text, response);
    if (fate == HttpResponse::Fate::broken) response.body = text;
    if (fate != HttpResponse::Fate::unknown) return fate;
  }
}

}  // namespace jobq::fault
