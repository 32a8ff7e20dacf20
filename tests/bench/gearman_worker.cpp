// bench_gearman_worker PORT THREADS: returns the body of each job of function `echo`, until killed.
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <thread>
#include <vector>

#include "gearman.h"

namespace {

class Worker {
 public:
  explicit Worker(int port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) std::exit(1);
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }

  void work() {
    using gearman::Type;
    send(gearman::packet(Type::canDo, "echo") + gearman::packet(Type::grabJob, ""));
    for (;;) {
      const gearman::Packet packet = next();
      if (packet.type == Type::noJob) {
        send(gearman::packet(Type::preSleep, ""));
      } else if (packet.type == Type::noop) {
        send(gearman::packet(Type::grabJob, ""));
      } else if (packet.type == Type::jobAssign) {
        // handle NUL function NUL body
        const std::size_t handle = packet.body.find('\0');
        const std::size_t function = packet.body.find('\0', handle + 1);
        const std::string done(packet.body.substr(0, handle + 1));
        send(gearman::packet(Type::workComplete, done + std::string(packet.body.substr(function + 1))) +
             gearman::packet(Type::grabJob, ""));
      }
    }
  }

 private:
  gearman::Packet next() {
    text_.erase(0, taken_);
    for (;;) {
      if (const auto packet = gearman::read(text_)) {
        taken_ = packet->size;
        return *packet;
      }
      char buffer[65536];
      const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
      if (got <= 0) std::exit(0);  // the server has gone
      text_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  void send(const std::string& text) { (void)!::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }

  const int socket_;
  std::string text_;
  std::size_t taken_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: bench_gearman_worker PORT THREADS\n";
    return 2;
  }
  std::vector<std::thread> threads;
  for (int i = 0; i < std::atoi(argv[2]); ++i) threads.emplace_back([&] { Worker(std::atoi(argv[1])).work(); });
  for (std::thread& thread : threads) thread.join();
}
