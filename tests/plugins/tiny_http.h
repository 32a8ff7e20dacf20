// A web server for tests on a free port of 127.0.0.1. The server reads each connection up to the end of its request,
// answers with the test's function, and closes the connection.
#pragma once

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstddef>
#include <functional>
#include <list>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "jobq/mutex.h"
#include "testkit/loopback_listener.h"
#include "testkit/wait_for.h"

namespace jobq::test {

struct TinyRequest {
  std::string method;
  std::string target;
  std::string head;  ///< the whole head, request line included
  std::string body;
};

/// One client's connection in the test's answer function. One thread.
class TinyConnection {
 public:
  TinyConnection(int socket, int stopped) : socket_(socket), stopped_(stopped) {}

  /// Sends all bytes. Returns false if the client has closed the connection.
  bool send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  void reply(int status, std::string_view body, std::string_view headers = "") const {
    send("HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n" + std::string(headers) + "\r\n" + std::string(body));
  }
  void redirect(std::string_view to) const { reply(302, "", "Location: " + std::string(to) + "\r\n"); }
  /// Sends no more bytes and blocks until the client leaves or the test ends, like an endlessly slow server.
  void hold() const {
    pollfd waits[] = {{socket_, POLLIN | POLLRDHUP, 0}, {stopped_, POLLIN, 0}};
    ::poll(waits, 2, -1);
  }

 private:
  const int socket_;
  const int stopped_;
};

/// The server. Each connection has a thread; the destructor closes every connection and joins the threads.
class TinyHttp {
 public:
  using Answer = std::function<void(const TinyRequest&, const TinyConnection&)>;

  explicit TinyHttp(Answer answer) : answer_(std::move(answer)) {
    if (::pipe(stopped_) != 0) throw std::runtime_error("the test's web server could not start");
    acceptor_ = std::thread([this] { accept(); });
  }

  ~TinyHttp() {
    ::close(stopped_[1]);  // wakes every poll on the other end
    testkit::join("the test's web server to end", acceptor_);
    testkit::joinAll("the connections of the test's web server to end", serving_);
    ::close(stopped_[0]);
  }
  TinyHttp(const TinyHttp&) = delete;
  TinyHttp& operator=(const TinyHttp&) = delete;

  int port() const { return listener_.port(); }
  std::string url(std::string_view path = "/") const {
    return "http://127.0.0.1:" + std::to_string(port()) + std::string(path);
  }

  /// Blocks until the first whole request has arrived. Throws testkit::WaitExpired past the deadline.
  void awaitRequest() {
    Lock lock(mutex_);
    for (testkit::WaitDeadline wait("a request"); requests_.empty();) wait.on(arrived_, mutex_);
  }
  std::vector<TinyRequest> requests() const {
    Lock lock(mutex_);
    return requests_;
  }

 private:
  void accept() {
    for (;;) {
      pollfd waits[] = {{listener_.socket(), POLLIN, 0}, {stopped_[0], POLLIN, 0}};
      ::poll(waits, 2, -1);
      if (waits[1].revents != 0) return;
      const int socket = ::accept4(listener_.socket(), nullptr, nullptr, SOCK_CLOEXEC);
      if (socket >= 0) serving_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    TinyRequest request;
    const TinyConnection connection(socket, stopped_[0]);
    if (readRequest(socket, connection, request)) {
      {
        Lock lock(mutex_);
        requests_.push_back(request);
        arrived_.notifyAll();
      }
      answer_(request, connection);
      ::shutdown(socket, SHUT_WR);
      connection.hold();
    }
    ::close(socket);
  }

  bool readRequest(int socket, const TinyConnection& connection, TinyRequest& request) const {
    std::string bytes;
    std::size_t end = 0;
    while ((end = bytes.find("\r\n\r\n")) == std::string::npos) {
      if (!readMore(socket, bytes)) return false;
    }
    request.head = bytes.substr(0, end + 2);
    request.method = bytes.substr(0, bytes.find(' '));
    const std::size_t target = request.method.size() + 1;
    request.target = bytes.substr(target, bytes.find(' ', target) - target);
    request.body = bytes.substr(end + 4);
    if (request.head.find("Expect: 100-continue") != std::string::npos) connection.send("HTTP/1.1 100 Go on\r\n\r\n");
    const std::size_t field = request.head.find("Content-Length: ");
    const std::size_t length = field == std::string::npos ? 0 : std::stoul(request.head.substr(field + 16));
    while (request.body.size() < length) {
      if (!readMore(socket, request.body)) return false;
    }
    return true;
  }

  bool readMore(int socket, std::string& bytes) const {
    char buffer[16'384];
    pollfd waits[] = {{socket, POLLIN, 0}, {stopped_[0], POLLIN, 0}};
    ::poll(waits, 2, -1);
    if (waits[1].revents != 0) return false;
    const ssize_t count = ::recv(socket, buffer, sizeof buffer, 0);
    if (count <= 0) return false;
    bytes.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  const Answer answer_;
  const testkit::Listener listener_;
  int stopped_[2] = {-1, -1};
  std::thread acceptor_;
  std::list<std::thread> serving_;  // filled by acceptor_, emptied by the destructor after the end of acceptor_
  mutable Mutex mutex_;
  Condition arrived_;
  std::vector<TinyRequest> requests_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::test
