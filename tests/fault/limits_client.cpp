// fault_limits_client PORT CONNECTIONS SECONDS FILE...
//   CONNECTIONS callers in one thread, each on a connection that stays open, each with one request on its way. A caller
//   sends the FILEs, whole requests, in turn, and goes on after every status. Prints a line for each answer: the FILE
//   (from 0), the status, and the times of the sent request and of the whole answer, in nanoseconds of the monotonic
//   clock. The server has seen the request at a moment between the two. Exits with 1 when a connection ends.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kLongestSilence = 20'000;  // milliseconds without any answer

std::int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

struct Answer {
  std::size_t kind;
  int status;
  std::int64_t sent;
  std::int64_t received;
};

class Caller {
 public:
  Caller(int port, const std::vector<std::string>& requests, std::size_t first)
      : requests_(requests), kind_(first % requests.size()), socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("cannot connect");
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  ~Caller() { ::close(socket_); }
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  void watch(int epoll) {
    epoll_event event{EPOLLIN, {}};
    event.data.ptr = this;
    if (::epoll_ctl(epoll, EPOLL_CTL_ADD, socket_, &event) != 0) fail("cannot watch a connection");
  }

  // Requests are small: one send on the socket is enough.
  void ask() {
    const std::string& request = requests_[kind_];
    text_.clear();
    sent_ = now();
    if (::send(socket_, request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
      fail("the server does not read");
    }
  }

  // Reads once. Returns true if the answer is whole; the answer is then noted.
  bool read(std::vector<Answer>& answers) {
    std::array<char, 4096> part;
    const ssize_t got = ::recv(socket_, part.data(), part.size(), 0);
    if (got <= 0) fail("a connection ended after '" + text_ + "'");
    text_.append(part.data(), static_cast<std::size_t>(got));
    if (!isWhole()) return false;
    answers.push_back({kind_, std::stoi(text_.substr(9, 3)), sent_, now()});
    kind_ = (kind_ + 1) % requests_.size();
    return true;
  }

 private:
  bool isWhole() const {
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    const std::size_t end = text_.find("\r\n\r\n");
    if (end == std::string::npos) return false;
    const std::size_t at = text_.find(kLength);
    if (!text_.starts_with("HTTP/1.1 ") || at > end) throw std::runtime_error("no answer of ours: " + text_);
    std::size_t length = 0;
    std::from_chars(text_.data() + at + kLength.size(), text_.data() + end, length);
    return text_.size() >= end + 4 + length;
  }

  const std::vector<std::string>& requests_;
  std::size_t kind_;
  const int socket_;
  std::int64_t sent_ = 0;
  std::string text_;
};

/// Ends when each request has its answer; no request begins after `seconds`.
std::vector<Answer> run(std::vector<std::unique_ptr<Caller>>& callers, double seconds) {
  std::vector<Answer> answers;
  const int epoll = ::epoll_create1(0);
  const std::int64_t end = now() + static_cast<std::int64_t>(seconds * 1e9);
  for (const auto& caller : callers) caller->watch(epoll);
  for (const auto& caller : callers) caller->ask();
  std::array<epoll_event, 64> events{};
  for (std::size_t open = callers.size(); open > 0;) {
    const int ready = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), kLongestSilence);
    if (ready == 0) throw std::runtime_error(std::to_string(open) + " callers have no answer");
    for (int i = 0; i < ready; ++i) {
      auto& caller = *static_cast<Caller*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (!caller.read(answers)) continue;
      if (now() < end) {
        caller.ask();
      } else {
        --open;
      }
    }
  }
  ::close(epoll);
  return answers;
}

std::string readFile(const char* name) {
  std::ifstream file(name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) {
    std::cerr << "usage: fault_limits_client PORT CONNECTIONS SECONDS FILE...\n";
    return 2;
  }
  try {
    std::vector<std::string> requests;
    for (int i = 4; i < argc; ++i) requests.push_back(readFile(argv[i]));
    std::vector<std::unique_ptr<Caller>> callers;
    const std::size_t count = std::stoul(argv[2]);
    for (std::size_t i = 0; i < count; ++i) {
      callers.push_back(std::make_unique<Caller>(std::stoi(argv[1]), requests, i));
    }
    for (const Answer& answer : run(callers, std::stod(argv[3]))) {
      std::cout << answer.kind << ' ' << answer.status << ' ' << answer.sent << ' ' << answer.received << '\n';
    }
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
