#include "closed_loop.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

class Connection {
 public:
  Connection(const Load& load, int epoll) : load_(load), epoll_(epoll) { open(); }
  ~Connection() { close(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(std::uint64_t number) {
    sent_ = Clock::now();
    waiting_ = true;
    if (socket_ < 0) open();
    if (load_.numbers == 0) return write(load_.request);
    constexpr std::size_t kDigits = 5;
    const std::string digits = std::to_string(number % load_.numbers);
    std::string request = load_.request;
    request.replace(load_.numberAt, kDigits, std::string(kDigits - digits.size(), '0') + digits);
    write(request);
  }

  // Reads once. Returns true if the round is over, or if the answer will not come.
  bool receive(Result& result) {
    if (!waiting_) {  // the connection has no more work, and the server closed first
      close();
      return false;
    }
    const ssize_t got = ::recv(socket_, buffer_.data(), buffer_.size(), 0);
    if (got > 0) text_.append(buffer_.data(), static_cast<std::size_t>(got));
    const Answer answer = got > 0 ? load_.measure(text_) : Answer{-1, true};
    if (answer.size == 0) return false;
    if (answer.size < 0) {
      ++result.errors;
      if (result.firstError.empty()) result.firstError = got > 0 ? text_.substr(0, 300) : "the connection was closed";
      waiting_ = false;
      close();
      return true;
    }
    const auto size = static_cast<std::size_t>(answer.size);
    const std::string next = load_.followUp ? load_.followUp(std::string_view(text_).substr(0, size)) : "";
    text_.erase(0, size);
    if (!next.empty()) {
      write(next);
      return false;
    }
    waiting_ = false;
    if (answer.closes) close();
    ++result.answers;
    result.micros.push_back(static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - sent_).count()));
    return true;
  }

 private:
  void open() {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(load_.port));
    ::inet_pton(AF_INET, load_.host.c_str(), &address.sin_addr);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
      throw std::runtime_error("cannot connect to port " + std::to_string(load_.port) + ": " + std::strerror(errno));
    }
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    epoll_event event{EPOLLIN, {}};
    event.data.ptr = this;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_, &event);
    write(load_.greeting);
  }

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
    text_.clear();
  }

  // Blocks for large requests: a server accepting 20 MB reads these bytes.
  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the answer, or its absence, will tell
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  const Load& load_;
  const int epoll_;
  int socket_ = -1;
  bool waiting_ = false;  // the connection waits for the answer of a request or of its follow-ups
  Clock::time_point sent_;
  std::string text_;
  std::array<char, 65536> buffer_;
};

}  // namespace

Result run(const Load& load) {
  const int epoll = ::epoll_create1(0);
  std::vector<std::unique_ptr<Connection>> connections;
  for (int i = 0; i < load.connections; ++i) connections.push_back(std::make_unique<Connection>(load, epoll));
  Result result;
  const auto start = Clock::now();
  const auto end = start + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(load.seconds));
  std::uint64_t started = 0;
  std::size_t open = 0;
  const auto next = [&](Connection& connection) {
    const bool more = load.count > 0 ? started < load.count : Clock::now() < end;
    if (!more || result.errors > 0) return false;
    ++started;
    connection.send(started);
    return true;
  };
  for (const auto& connection : connections) open += next(*connection) ? 1 : 0;
  std::array<epoll_event, 256> events{};
  while (open > 0) {
    const int ready = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 60'000);
    if (ready == 0) throw std::runtime_error("no answer for 60 seconds");
    for (int i = 0; i < ready; ++i) {
      auto& connection = *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (connection.receive(result) && !next(connection)) --open;
    }
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  connections.clear();
  ::close(epoll);
  return result;
}

std::string toJson(Result& result) {
  std::sort(result.micros.begin(), result.micros.end());
  const auto at = [&](double part) {
    if (result.micros.empty()) return 0U;
    return result.micros[std::min(result.micros.size() - 1,
                                  static_cast<std::size_t>(part * static_cast<double>(result.micros.size())))];
  };
  std::ostringstream text;
  text << "{\"rate\": " << static_cast<double>(result.answers) / result.seconds << ", \"answers\": " << result.answers
       << ", \"seconds\": " << result.seconds << ", \"p50\": " << at(0.5) << ", \"p99\": " << at(0.99)
       << ", \"longest\": " << at(1) << ", \"errors\": " << result.errors << "}";
  return text.str();
}

}  // namespace bench
