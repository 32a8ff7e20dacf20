// A connection without a network: a ByteStream at the server's end, and the client's end driven by a test.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/http/transport/byte_stream.h"

namespace jobq::test {

/// Both ends of one connection. One thread may use an object.
class SocketPair {
 public:
  SocketPair() {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::system_error(errno, std::generic_category(), "socketpair");
    }
    client_ = ends[0];
    stream_ = plainStream(ends[1]);
  }
  ~SocketPair() { hangUp(); }
  SocketPair(const SocketPair&) = delete;
  SocketPair& operator=(const SocketPair&) = delete;

  /// Returns the server's end. Call at most once.
  std::unique_ptr<ByteStream> releaseStream() { return std::move(stream_); }
  ByteStream& stream() { return *stream_; }

  void send(std::string_view text) const {
    ASSERT_EQ(::send(client_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  /// Closes the client's sending direction.
  void endSending() const { ::shutdown(client_, SHUT_WR); }
  void hangUp() {
    if (client_ >= 0) ::close(client_);
    client_ = -1;
  }

  /// Takes and returns the bytes sent by the server so far, without waiting.
  std::string received() {
    std::string text;
    char bytes[65'536];
    for (;;) {
      const ssize_t got = ::recv(client_, bytes, sizeof bytes, MSG_DONTWAIT);
      if (got == 0) ended_ = true;
      if (got <= 0) return text;
      text.append(bytes, static_cast<std::size_t>(got));
    }
  }
  /// Returns true if the server has closed its sending direction; known after received().
  bool sawEnd() const { return ended_; }

 private:
  int client_ = -1;
  bool ended_ = false;
  std::unique_ptr<ByteStream> stream_;
};

}  // namespace jobq::test
