// A listening socket of a test.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <stdexcept>

#include "jobq/file_descriptor.h"

namespace jobq::testkit {

/// A listening socket, by default on a free port of 127.0.0.1.
class Listener {
 public:
  /// Throws std::runtime_error.
  explicit Listener(int backlog = 128) : Listener(backlog, loopback(0)) {}
  Listener(int backlog, sockaddr_in address) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    socklen_t length = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    if (::bind(socket(), any, length) != 0 || ::listen(socket(), backlog) != 0 ||
        ::getsockname(socket(), any, &length) != 0) {
      throw std::runtime_error("the test could not listen");
    }
    port_ = ntohs(address.sin_port);
  }

  int socket() const { return socket_.number(); }
  std::uint16_t port() const { return port_; }

  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }

 private:
  const FileDescriptor socket_;
  std::uint16_t port_ = 0;
};

}  // namespace jobq::testkit
