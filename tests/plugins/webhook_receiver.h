// A receiver of webhooks controlled byte by byte by the test's script for each connection, on request with TLS. Tests
// of receivers with correct HTTP use tiny_http.h.
#pragma once

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <functional>
#include <iomanip>
#include <list>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "jobq/mutex.h"
#include "jobq/time.h"
#include "testkit/loopback_listener.h"
#include "testkit/wait_for.h"
#include "webhook_certificates.h"

namespace jobq::test {

using testkit::Listener;

/// Returns the lines of the system's table of TCP connections that contain `text`. Other programs may have tens of
/// thousands of connections, so only few lines should be looked at more closely.
inline std::vector<std::string> connectionsWith(const std::string& text) {
  std::ifstream table("/proc/net/tcp");
  std::vector<std::string> found;
  for (std::string line; std::getline(table, line);) {
    if (line.find(text) != std::string::npos) found.push_back(line);
  }
  return found;
}

/// Returns true if a line that contains `text` matches.
inline bool isConnectionLike(const std::string& text, const std::string& pattern) {
  const std::vector<std::string> lines = connectionsWith(text);
  const std::regex wanted(pattern);
  return std::any_of(lines.begin(), lines.end(), [&](const auto& line) { return std::regex_search(line, wanted); });
}

/// Returns a port of 127.0.0.1 in the notation of the system's table.
inline std::string inTable(int port) {
  std::ostringstream text;
  text << " 0100007F:" << std::uppercase << std::hex << std::setfill('0') << std::setw(4) << port;
  return text.str();
}

/// One connection in the hands of a script. One thread.
class Peer {
 public:
  Peer(int socket, SSL* tls) : socket_(socket), tls_(tls) {}

  /// Sends all bytes. Returns false if the client or the test has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = tls_ == nullptr ? ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL)
                                         : SSL_write(tls_, bytes.data(), static_cast<int>(bytes.size()));
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
      sent_ += static_cast<std::size_t>(count);
    }
    return true;
  }
  /// Returns the next bytes, or an empty string if the client or the test has closed the connection.
  std::string receive() {
    std::string bytes(65'536, '\0');
    const auto count = tls_ == nullptr ? ::recv(socket_, bytes.data(), bytes.size(), 0)
                                       : SSL_read(tls_, bytes.data(), static_cast<int>(bytes.size()));
    bytes.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return bytes;
  }
  /// Returns head and body of a request, or an empty string if the client leaves before the end of the request.
  std::string readRequest() {
    std::string request;
    std::size_t length = std::string::npos;
    while (request.size() < length) {
      const std::string more = receive();
      if (more.empty()) return {};
      request += more;
      const std::size_t end = request.find("\r\n\r\n");
      const std::size_t field = request.find("Content-Length: ");
      if (end != std::string::npos) length = end + 4 + (field < end ? std::stoul(request.substr(field + 16)) : 0);
    }
    return request;
  }
  /// Sends no more bytes and blocks until the client or the test closes the connection.
  void hold() {
    while (!receive().empty()) continue;
  }
  /// Returns true if the client leaves, or sends bytes, within the time: the pace of a dripping receiver.
  bool leaves(Millis within) const {
    pollfd wait{socket_, POLLIN | POLLRDHUP, 0};
    return ::poll(&wait, 1, static_cast<int>(within.count())) != 0;
  }
  /// Blocks until the client has read all sent bytes, because a RST overtakes unread bytes.
  void awaitRead() const {
    sockaddr_in client{};
    socklen_t length = sizeof client;
    ::getpeername(socket_, reinterpret_cast<sockaddr*>(&client), &length);
    const std::string there = inTable(ntohs(client.sin_port));
    const std::string underway = "[0-9]: [^ ]+" + there + " [^ ]+ (?!00000000:)";
    const std::string unread = "[0-9]:" + there + " [^ ]+ [^ ]+ [^ ]+:(?!00000000 )";
    testkit::waitFor("what was sent to arrive", [&] { return !isConnectionLike(there, underway); });
    testkit::waitFor("what arrived to be read", [&] { return !isConnectionLike(there, unread); });
  }
  /// Makes the end of the connection a RST instead of a FIN.
  void reset() const {
    const linger now{1, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  std::size_t sent() const { return sent_; }

 private:
  const int socket_;
  SSL* const tls_;
  std::size_t sent_ = 0;
};

/// The receiver. Each connection has a thread; the destructor closes every connection and joins the threads.
class Receiver {
 public:
  using Script = std::function<void(Peer&)>;

  explicit Receiver(Script script) : Receiver(std::move(script), Tls()) {}
  /// Makes a receiver with TLS up to version `newest`. The script begins after a successful handshake, and does not run
  /// without a successful handshake.
  Receiver(Script script, const Identity& identity, int newest = TLS1_3_VERSION)
      : Receiver(std::move(script), tlsOf(identity, newest)) {}
  ~Receiver() {
    {
      Lock lock(mutex_);
      ending_ = true;
      for (const int socket : open_) ::shutdown(socket, SHUT_RDWR);
    }
    ::shutdown(listener_.socket(), SHUT_RDWR);
    testkit::join("the test's receiver to end", acceptor_);
    testkit::joinAll("the connections of the test's receiver to end", serving_);
  }
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  int port() const { return listener_.port(); }
  std::string url(const std::string& path = "/", const std::string& host = "127.0.0.1") const {
    return (tls_ == nullptr ? "http://" : "https://") + host + ":" + std::to_string(port()) + path;
  }
  /// Returns the number of accepted connections.
  int accepted() const { return accepted_; }

 private:
  using Tls = std::shared_ptr<SSL_CTX>;

  Receiver(Script script, Tls tls)
      : script_(std::move(script)), tls_(std::move(tls)), acceptor_([this] { accept(); }) {}

  static Tls tlsOf(const Identity& identity, int newest) {
    Tls tls(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
    SSL_CTX_set_security_level(tls.get(), 0);  // the client has to refuse old versions
    SSL_CTX_set_min_proto_version(tls.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(tls.get(), newest);
    SSL_CTX_use_certificate(tls.get(), identity.certificate.get());
    SSL_CTX_use_PrivateKey(tls.get(), identity.key.get());
    return tls;
  }

  void accept() {
    for (;;) {
      const int socket = ::accept4(listener_.socket(), nullptr, nullptr, SOCK_CLOEXEC);
      if (socket < 0) return;
      Lock lock(mutex_);
      if (ending_) ::shutdown(socket, SHUT_RDWR);
      open_.push_back(socket);
      ++accepted_;
      serving_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    // OpenSSL writes without MSG_NOSIGNAL. The receiver blocks the signal, because the test checks for a signal of the
    // client.
    sigset_t pipe;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
    run(socket);
    Lock lock(mutex_);
    open_.remove(socket);
    ::close(socket);
  }

  void run(int socket) {
    const std::unique_ptr<SSL, decltype(&SSL_free)> tls(tls_ == nullptr ? nullptr : SSL_new(tls_.get()), SSL_free);
    if (tls != nullptr) {
      SSL_set_fd(tls.get(), socket);
      if (SSL_accept(tls.get()) != 1) return;
    }
    Peer peer(socket, tls.get());
    script_(peer);
  }

  const Script script_;
  const Tls tls_;
  const Listener listener_;
  std::atomic<int> accepted_{0};
  Mutex mutex_;
  bool ending_ JOBQ_GUARDED_BY(mutex_) = false;
  std::list<int> open_ JOBQ_GUARDED_BY(mutex_);
  std::list<std::thread> serving_;  // filled by acceptor_, emptied by the destructor after the end of acceptor_
  std::thread acceptor_;
};

}  // namespace jobq::test
