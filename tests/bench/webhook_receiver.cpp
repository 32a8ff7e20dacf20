// bench_receiver PORT DELAY_MS [PORTS]: a receiver of webhooks on one thread, which answers each request 200 after the
// delay and keeps its connections. It listens on PORTS ports from PORT on. Ends with SIGTERM, and prints the number of
// requests and of connections before.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kAnswer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

class Receiver {
 public:
  explicit Receiver(std::chrono::milliseconds delay) : delay_(delay) {}

  bool listen(int port) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    if (::bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || ::listen(socket, 4096) != 0) {
      return false;
    }
    listeners_.insert(socket);
    watch(socket);
    return true;
  }

  void run(int signals) {
    watch(signals);
    for (;;) {
      epoll_event events[256];
      const int count = ::epoll_wait(poller_, events, 256, untilNextAnswer());
      for (int i = 0; i < count; ++i) {
        if (events[i].data.fd == signals) return;
        if (listeners_.contains(events[i].data.fd)) {
          accept(events[i].data.fd);
        } else {
          read(events[i].data.fd);
        }
      }
      answerDue();
    }
  }

  std::uint64_t requests() const { return requests_; }
  std::uint64_t connections() const { return connections_; }

 private:
  struct Connection {
    std::uint64_t number = 0;
    std::string bytes;
  };
  struct Due {
    Clock::time_point at;
    int socket = -1;
    std::uint64_t connection = 0;
  };

  void watch(int descriptor) const {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    ::epoll_ctl(poller_, EPOLL_CTL_ADD, descriptor, &event);
  }

  int untilNextAnswer() const {
    if (due_.empty()) return -1;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(due_.front().at - Clock::now()).count();
    return static_cast<int>(std::max<std::int64_t>(left, 0));
  }

  void accept(int listener) {
    for (int socket = 0; (socket = ::accept4(listener, nullptr, nullptr, SOCK_NONBLOCK)) >= 0;) {
      const int on = 1;
      ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      open_[socket].number = ++connections_;
      watch(socket);
    }
  }

  void read(int socket) {
    char buffer[65'536];
    const ssize_t count = ::recv(socket, buffer, sizeof buffer, 0);
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {
      open_.erase(socket);
      ::close(socket);
      return;
    }
    Connection& connection = open_[socket];
    connection.bytes.append(buffer, static_cast<std::size_t>(count));
    const std::size_t head = connection.bytes.find("\r\n\r\n");
    if (head == std::string::npos) return;
    const std::size_t field = connection.bytes.find("Content-Length: ");
    const std::size_t body = field < head ? std::strtoul(connection.bytes.c_str() + field + 16, nullptr, 10) : 0;
    if (connection.bytes.size() < head + 4 + body) return;
    connection.bytes.clear();
    ++requests_;
    due_.push_back({Clock::now() + delay_, socket, connection.number});
  }

  void answerDue() {
    for (const auto now = Clock::now(); !due_.empty() && due_.front().at <= now; due_.pop_front()) {
      const auto at = open_.find(due_.front().socket);
      if (at == open_.end() || at->second.number != due_.front().connection) continue;  // the caller has left
      (void)::send(at->first, kAnswer.data(), kAnswer.size(), MSG_NOSIGNAL);
    }
  }

  const std::chrono::milliseconds delay_;
  const int poller_ = ::epoll_create1(0);
  std::set<int> listeners_;
  std::map<int, Connection> open_;
  std::deque<Due> due_;  // in the order of their times, because all have the same delay
  std::uint64_t requests_ = 0;
  std::uint64_t connections_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: bench_receiver PORT DELAY_MS [PORTS]\n";
    return 2;
  }
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  Receiver receiver{std::chrono::milliseconds(std::atoi(argv[2]))};
  const int ports = argc > 3 ? std::atoi(argv[3]) : 1;
  for (int i = 0; i < ports; ++i) {
    if (!receiver.listen(std::atoi(argv[1]) + i)) {
      std::cerr << "port " << std::atoi(argv[1]) + i << " is not free\n";
      return 1;
    }
  }
  receiver.run(::signalfd(-1, &set, 0));
  std::cout << receiver.requests() << " requests on " << receiver.connections() << " connections\n";
  return 0;
}
