// fault_load_client PORT KEY ENDPOINT CONNECTIONS JOBS
//   Sends JOBS jobs to an endpoint whose handler returns the input, over CONNECTIONS connections that stay open, a
//   thread for each. Each job has an input of its own. A third goes by /runsync, a third by /run and then /status-sync,
//   a third by /run and, some jobs later, /status. An answer counts when it is 200, COMPLETED, has the job's id and,
//   byte for byte, the job's input as its output. Prints a line of JSON; exits with 1 when an answer was wrong.
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <iostream>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "testkit/wait_for.h"

namespace {

constexpr std::size_t kLater = 1;        // jobs between a /run and its /status
constexpr std::size_t kLongInput = 97;   // distance in jobs between two large inputs
constexpr std::size_t kLongest = 60000;  // length of a large input in bytes

struct Target {
  int port;
  std::string key;
  std::string endpoint;
};

constexpr time_t kLongestAnswer = 300;  // seconds for each part of an answer: bounds a hang, and judges no pace

/// A connection that stays open. Confined to one thread.
class Connection {
 public:
  explicit Connection(const Target& target) : target_(target), socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(target.port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("cannot connect");
    const int on = 1;
    ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const timeval longest{kLongestAnswer, 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest);
  }
  ~Connection() { ::close(socket_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Returns the body of the answer. Throws std::runtime_error unless the status is 200.
  std::string_view ask(std::string_view method, const std::string& path, std::string_view body = "") {
    request_.assign(method).append(" /v2/").append(target_.endpoint).append(path).append(" HTTP/1.1\r\n");
    request_.append("Host: jobq\r\nAuthorization: Bearer ").append(target_.key).append("\r\n");
    request_.append("Content-Length: ").append(std::to_string(body.size())).append("\r\n\r\n").append(body);
    send(request_);
    return answer();
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw std::runtime_error(what + ": " + std::strerror(errno));
  }

  void send(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t sent = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) fail("the server does not read");
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  void receive() {
    char part[65536];
    const ssize_t got = ::recv(socket_, part, sizeof part, 0);
    if (got <= 0) fail("no answer, or an end of the connection, after '" + text_ + "'");
    text_.append(part, static_cast<std::size_t>(got));
  }

  // Answers of this API have a Content-Length, and one answer is on its way at a time.
  std::string_view answer() {
    text_.clear();
    std::size_t end = std::string::npos;
    while ((end = text_.find("\r\n\r\n")) == std::string::npos) receive();
    constexpr std::string_view kLength = "\r\nContent-Length: ";
    const std::size_t at = text_.find(kLength);
    std::size_t length = 0;
    if (at > end) throw std::runtime_error("no length in " + text_);
    std::from_chars(text_.data() + at + kLength.size(), text_.data() + end, length);
    while (text_.size() < end + 4 + length) receive();
    if (!text_.starts_with("HTTP/1.1 200 ")) throw std::runtime_error("instead of 200: " + text_.substr(0, 500));
    return std::string_view(text_).substr(end + 4);
  }

  const Target& target_;
  const int socket_;
  std::string request_;
  std::string text_;
};

/// Returns an input unique to the job, with parts that a careless server would rewrite.
std::string inputOf(std::size_t number) {
  std::string input = "{ \"n\":" + std::to_string(number) + ",\"z\":1.0, \"a\":-0,\"u\":\"\\u00e9\xc3\xa9\",";
  input += "\"big\":12345678901234567890" + std::to_string(number) + ",\"text\":\"";
  const std::size_t length = number % kLongInput == 0 ? kLongest : number % 199;
  for (std::size_t i = 0; i < length; ++i) input += static_cast<char>('a' + (number * 31 + i * i) % 26);
  return input += "\" }";
}

/// Returns the value of a text member. Ids and states need no escapes.
std::string_view member(std::string_view object, std::string_view name) {
  const std::string key = "\"" + std::string(name) + "\":\"";
  const std::size_t at = object.find(key);
  if (at == std::string_view::npos) return {};
  object.remove_prefix(at + key.size());
  return object.substr(0, object.find('"'));
}

/// State shared by all connections.
struct Run {
  Target target;
  std::size_t jobs;
  std::atomic<std::size_t> next{0};
  std::atomic<std::size_t> right{0};
  std::atomic<std::size_t> askedAgain{0};
  std::mutex mutex;
  std::string fault;  // first fault; guarded by mutex

  void note(const std::string& what) {
    const std::lock_guard lock(mutex);
    if (fault.empty()) fault = what;
    next = jobs;  // no connection begins another job
  }
};

/// The jobs of one connection.
class Caller {
 public:
  explicit Caller(Run& run) : run_(run), connection_(run.target) {}

  void work() {
    for (std::size_t number = run_.next++; number < run_.jobs; number = run_.next++) {
      const std::string body = "{\"input\":" + inputOf(number) + "}";
      if (number % 3 == 0) {
        check(number, "", connection_.ask("POST", "/runsync", body));
        continue;
      }
      const std::string id(member(connection_.ask("POST", "/run", body), "id"));
      if (number % 3 == 1) {
        check(number, id, connection_.ask("GET", "/status-sync/" + id));
      } else {
        later_.push_back({number, id});
        if (later_.size() > kLater) askForOldest();
      }
    }
    while (!later_.empty()) askForOldest();
  }

 private:
  void askForOldest() {
    const auto [number, id] = later_.front();
    later_.pop_front();
    std::string_view job = connection_.ask("GET", "/status/" + id);
    const std::string_view state = member(job, "status");
    if (state == "IN_QUEUE" || state == "IN_PROGRESS") {
      ++run_.askedAgain;
      job = connection_.ask("GET", "/status-sync/" + id);
    }
    check(number, id, job);
  }

  void check(std::size_t number, std::string_view id, std::string_view job) {
    const std::string ending = ",\"output\":" + inputOf(number) + "}";
    const bool own = id.empty() ? !member(job, "id").empty() : member(job, "id") == id;
    if (!own || member(job, "status") != "COMPLETED" || !job.ends_with(ending)) {
      throw std::runtime_error("job " + std::to_string(number) + " ended as " + std::string(job.substr(0, 1000)));
    }
    ++run_.right;
  }

  struct Later {
    std::size_t number;
    std::string id;
  };

  Run& run_;
  Connection connection_;
  std::deque<Later> later_;
};

void callFrom(Run& run) {
  try {
    Caller(run).work();
  } catch (const std::exception& error) {
    run.note(error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cerr << "usage: fault_load_client PORT KEY ENDPOINT CONNECTIONS JOBS\n";
    return 2;
  }
  Run run{{std::atoi(argv[1]), argv[2], argv[3]}, std::strtoull(argv[5], nullptr, 10), {}, {}, {}, {}, {}};
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> callers;
  for (int i = 0; i < std::atoi(argv[4]); ++i) callers.emplace_back(callFrom, std::ref(run));
  jobq::testkit::joinAll("the callers", callers, std::chrono::hours(1));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::cout << "{\"right\": " << run.right << ", \"askedAgain\": " << run.askedAgain << ", \"seconds\": " << seconds
            << "}" << std::endl;
  if (!run.fault.empty()) std::cerr << run.fault << "\n";
  return run.fault.empty() && run.right == run.jobs ? 0 : 1;
}
