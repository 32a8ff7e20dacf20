// A connection without a network: the server's end is a Link, the client's end is driven by a test.
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

/// One thread.
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

  /// The server's end, to be taken once.
  std::unique_ptr<ByteStream> takeStream() { return std::move(stream_); }
  ByteStream& stream() { return *stream_; }

  void send(std::string_view text) const {
    ASSERT_EQ(::send(client_, text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  /// The client sends nothing more.
  void endSending() const { ::shutdown(client_, SHUT_WR); }
  void hangUp() {
    if (client_ >= 0) ::close(client_);
    client_ = -1;
  }

  /// Takes what the server has sent so far. Does not wait.
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
  /// The server has said that nothing more will come; known after received().
  bool sawEnd() const { return ended_; }

 private:
  int client_ = -1;
  bool ended_ = false;
  std::unique_ptr<ByteStream> stream_;
};

}  // namespace jobq::test
