#include "lockless_proxy.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

#include "testkit/wait_for.h"

namespace jobq::testkit {
namespace {

constexpr char kQuery = 0x03;    // COM_QUERY
constexpr char kPrepare = 0x16;  // COM_STMT_PREPARE
constexpr std::size_t kHeader = 4;
constexpr std::array<std::string_view, 3> kLocks{" FOR UPDATE SKIP LOCKED", " FOR UPDATE", " LOCK IN SHARE MODE"};

bool readAll(int from, char* to, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::read(from, to, size);
    if (count <= 0) return false;
    to += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

bool writeAll(int to, const char* from, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::send(to, from, size, MSG_NOSIGNAL);
    if (count <= 0) return false;
    from += count;
    size -= static_cast<std::size_t>(count);
  }
  return true;
}

/// Reads a packet of the protocol: three bytes of length, a number, and the content.
bool readPacket(int from, std::string& packet) {
  packet.resize(kHeader);
  if (!readAll(from, packet.data(), kHeader)) return false;
  std::size_t size = 0;
  for (std::size_t i = 3; i-- > 0;) size = size << 8 | static_cast<unsigned char>(packet[i]);
  packet.resize(kHeader + size);
  return readAll(from, packet.data() + kHeader, size);
}

int connectTo(const std::string& socket) {
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

}  // namespace

LocklessProxy::LocklessProxy(std::string socket) : socket_(std::move(socket)), acceptor_([this] { accept(); }) {}

LocklessProxy::~LocklessProxy() {
  ::shutdown(listener_.socket(), SHUT_RDWR);
  join("the thread of the proxy that accepts connections", acceptor_);
  Lock lock(mutex_);
  for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
  joinAll("the threads of the proxy", threads_);
  for (const int socket : sockets_) ::close(socket);
}

void LocklessProxy::accept() {
  for (int client = 0; (client = ::accept4(listener_.socket(), nullptr, nullptr, SOCK_CLOEXEC)) >= 0;) connect(client);
}

void LocklessProxy::connect(int client) {
  const int yes = 1;
  ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  const int server = connectTo(socket_);
  if (server < 0) {
    ::close(client);
    return;
  }
  const auto end = [client, server] {
    ::shutdown(client, SHUT_RDWR);
    ::shutdown(server, SHUT_RDWR);
  };
  Lock lock(mutex_);
  sockets_.insert(sockets_.end(), {client, server});
  threads_.emplace_back([this, client, server, end] {
    for (std::string packet; readPacket(client, packet);) {
      blank(packet);
      if (!writeAll(server, packet.data(), packet.size())) break;
    }
    end();
  });
  threads_.emplace_back([client, server, end] {
    std::array<char, 16'384> bytes;
    for (ssize_t count = 0; (count = ::read(server, bytes.data(), bytes.size())) > 0;) {
      if (!writeAll(client, bytes.data(), static_cast<std::size_t>(count))) break;
    }
    end();
  });
}

// A command is the first packet of its sequence.
void LocklessProxy::blank(std::string& packet) {
  if (!strips_ || packet.size() <= kHeader || packet[3] != 0) return;
  if (packet[kHeader] != kQuery && packet[kHeader] != kPrepare) return;
  bool hasLost = false;
  for (const std::string_view words : kLocks) {
    for (std::size_t at = 0; (at = packet.find(words, at)) != std::string::npos; hasLost = true) {
      std::fill_n(packet.begin() + static_cast<std::ptrdiff_t>(at), words.size(), ' ');
    }
  }
  if (hasLost) ++stripped_;
}

}  // namespace jobq::testkit
