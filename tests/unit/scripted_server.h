// A server whose answers are bytes of the test, for tests of HTTP clients.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "jobq/mutex.h"
#include "testkit/loopback_listener.h"
#include "testkit/wait_for.h"

namespace jobq::test {

/// Serves one connection after the other on a separate thread: reads one request, sends the next answer of the test,
/// and closes. Without an answer the connection is closed at once. Any thread may call the functions.
class ScriptedServer {
 public:
  ScriptedServer() : thread_([this] { serve(); }) {}
  ~ScriptedServer() {
    ::shutdown(listener_.socket(), SHUT_RDWR);
    testkit::join("the server of the test", thread_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(listener_.port()); }

  /// Adds the bytes of one more answer.
  void answerRaw(std::string bytes) {
    const Lock lock(mutex_);
    answers_.push_back(std::move(bytes));
  }
  /// Adds one more answer with the status line, further fields (each ended by "\r\n") and a body.
  void answer(std::string_view body, std::string_view status = "200 OK", std::string_view fields = "") {
    answerRaw("HTTP/1.1 " + std::string(status) + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" +
              std::string(fields) + "\r\n" + std::string(body));
  }

  /// Returns the requests so far, each from the first line to the end of the body.
  std::vector<std::string> requests() const {
    const Lock lock(mutex_);
    return requests_;
  }
  /// Returns the first lines of the requests so far, without the version, each followed by the body if there is one.
  std::vector<std::string> calls() const {
    std::vector<std::string> lines;
    for (const std::string& request : requests()) {
      const std::string body = request.substr(request.find("\r\n\r\n") + 4);
      lines.push_back(request.substr(0, request.find(" HTTP/1.1\r\n")) + (body.empty() ? "" : " " + body));
    }
    return lines;
  }

 private:
  void serve() {
    for (;;) {
      const int connection = ::accept4(listener_.socket(), nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0 && errno == EINTR) continue;
      if (connection < 0) return;
      std::string request = read(connection);
      std::string response;
      {
        const Lock lock(mutex_);
        requests_.push_back(std::move(request));
        if (!answers_.empty()) {
          response = std::move(answers_.front());
          answers_.pop_front();
        }
      }
      for (std::string_view rest = response; !rest.empty();) {
        const ssize_t sent = ::send(connection, rest.data(), rest.size(), MSG_NOSIGNAL);
        if (sent <= 0) break;
        rest.remove_prefix(static_cast<std::size_t>(sent));
      }
      ::close(connection);
    }
  }

  /// Reads a head and the body announced by Content-Length; less if the client ends or is silent past the deadline.
  static std::string read(int connection) {
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    std::string text;
    std::array<char, 16'384> bytes{};
    for (std::size_t whole = std::string::npos; text.size() < whole;) {
      pollfd waiting{connection, POLLIN, 0};
      const auto atMost = std::chrono::milliseconds(testkit::kHangDeadline).count();
      if (::poll(&waiting, 1, static_cast<int>(atMost)) != 1) return text;
      const ssize_t got = ::recv(connection, bytes.data(), bytes.size(), 0);
      if (got <= 0) return text;
      text.append(bytes.data(), static_cast<std::size_t>(got));
      const std::size_t end = text.find("\r\n\r\n");
      if (end == std::string::npos) continue;
      const std::size_t length = text.find(kLength);
      whole = end + 4;
      if (length < end) whole += std::strtoul(text.c_str() + length + kLength.size(), nullptr, 10);
    }
    return text;
  }

  const testkit::Listener listener_;
  mutable Mutex mutex_;
  std::deque<std::string> answers_ JOBQ_GUARDED_BY(mutex_);
  std::vector<std::string> requests_ JOBQ_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace jobq::test
