// Tests of the listening socket (core/http/transport/acceptor.h): the limit for each address, the refusal, a process
// without descriptors, and a process without memory.
#include "core/http/transport/acceptor.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "testkit/no_descriptors.h"
#include "testkit/recording_log.h"
#include "testkit/wait_for.h"

namespace {
thread_local bool hasMemory = true;
}

// Throws while the calling thread has no memory. Inlined, the functions would look to GCC like malloc paired with
// delete. The runtime of clang's ThreadSanitizer defines the functions, too.
#if !JOBQ_SANITIZED_THREADS
[[gnu::noinline]] void* operator new(std::size_t size) {
  void* memory = hasMemory ? std::malloc(size == 0 ? 1 : size) : nullptr;
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { operator delete(memory); }
#endif

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

sockaddr_in addressOf(const char* host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  EXPECT_EQ(::inet_pton(AF_INET, host, &address.sin_addr), 1);
  return address;
}

/// Limits the process to `limit` descriptors, of which `left` are free, until the end of the object.
class FewDescriptors {
 public:
  FewDescriptors(int limit, int left) {
    EXPECT_EQ(::getrlimit(RLIMIT_NOFILE, &before_), 0);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(limit);
    EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    int last = -1;
    while (last < limit - left - 1) {
      last = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      EXPECT_GE(last, 0);
      if (last < 0) return;
      taken_.push_back(last);
    }
  }
  ~FewDescriptors() {
    for (const int descriptor : taken_) ::close(descriptor);
    ::setrlimit(RLIMIT_NOFILE, &before_);
  }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
  std::vector<int> taken_;
};

/// The client's end of a connection.
class Client {
 public:
  /// Connects to `port` of 127.0.0.1 from the address `from`.
  explicit Client(std::uint16_t port, const char* from = "127.0.0.1") {
    const sockaddr_in here = addressOf(from, 0);
    const sockaddr_in there = addressOf("127.0.0.1", port);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&here), sizeof here), 0);
    if (::connect(socket_, reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0) error_ = errno;
  }
  ~Client() { ::close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// Returns the error of the connect, or 0.
  int error() const { return error_; }
  /// Returns true if the server has closed the connection.
  bool isClosed() const {
    char byte = 0;
    const ssize_t got = ::recv(socket_, &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno == ECONNRESET);
  }

 private:
  const int socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int error_ = 0;
};

/// An accepted connection, closed at the end of the object.
struct Connected {
  explicit Connected(Acceptor::Accepted accepted) : descriptor(accepted.descriptor), place(std::move(accepted.place)) {}
  ~Connected() { ::close(descriptor); }
  Connected(const Connected&) = delete;
  Connected& operator=(const Connected&) = delete;

  const int descriptor;
  const AddressPlaces::Place place;
};

class AcceptorTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kId = 7;

  ~AcceptorTest() override { ::close(epoll_); }

  /// Makes a listening socket, and remembers its port.
  int listener() {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    sockaddr_in address = addressOf("127.0.0.1", 0);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(socket, 16), 0);
    EXPECT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    return socket;
  }
  /// Returns the next connection, and waits for the connection to arrive.
  static std::unique_ptr<Connected> accept(Acceptor& acceptor) {
    std::optional<Acceptor::Accepted> accepted;
    testkit::waitFor("a connection to be accepted", [&] { return (accepted = acceptor.next()).has_value(); });
    return std::make_unique<Connected>(std::move(*accepted));
  }
  /// Calls next() until the server has closed the client's connection. Expects no connection from next().
  static void awaitClosed(Acceptor& acceptor, const Client& client) {
    testkit::waitFor("the connection to be closed", [&] {
      EXPECT_FALSE(acceptor.next());
      return client.isClosed();
    });
  }
  /// Returns true if epoll reports the listener now.
  bool isReported() const {
    epoll_event event{};
    if (::epoll_wait(epoll_, &event, 1, 0) == 0) return false;
    EXPECT_EQ(event.data.u64, kId);
    return true;
  }
  void awaitReport() const {
    testkit::waitFor("epoll to report the listener", [this] { return isReported(); });
  }

  const int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
  testkit::RecordingLog log_;
  std::uint16_t port_ = 0;
};

TEST_F(AcceptorTest, AWaitingConnectionIsReportedAndAccepted) {
  Acceptor acceptor(listener(), 0, log_);
  acceptor.watchWith(epoll_, kId);
  EXPECT_FALSE(acceptor.next());
  EXPECT_FALSE(isReported());
  const Client client(port_);
  awaitReport();
  const auto connected = accept(acceptor);
  EXPECT_NE(::fcntl(connected->descriptor, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(acceptor.connections(), 1U);
  EXPECT_FALSE(isReported());
  EXPECT_FALSE(acceptor.retryAt());
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(AcceptorTest, ConnectionsBeyondTheLimitOfAnAddressAreClosedAndLoggedOnce) {
  Acceptor acceptor(listener(), 2, log_);
  const Client one(port_);
  auto first = accept(acceptor);
  const Client two(port_);
  const auto second = accept(acceptor);
  const Client three(port_);
  const Client four(port_);
  awaitClosed(acceptor, three);
  awaitClosed(acceptor, four);
  EXPECT_EQ(acceptor.connections(), 2U);
  EXPECT_FALSE(one.isClosed());
  EXPECT_FALSE(two.isClosed());
  EXPECT_THAT(log_.lines(), ElementsAre(StartsWith("http.addressLimit: 127.0.0.1 has as many connections as "
                                                   "server.connectionsPerAddress allows")));
  const Client other(port_, "127.0.0.2");
  const auto third = accept(acceptor);
  EXPECT_EQ(acceptor.connections(), 3U);
  first.reset();
  EXPECT_EQ(acceptor.connections(), 2U);
  const Client five(port_);
  const auto fourth = accept(acceptor);
  EXPECT_EQ(acceptor.connections(), 3U);
}

TEST_F(AcceptorTest, AfterRefuseThereIsNoConnectionAndNoPause) {
  Acceptor acceptor(listener(), 0, log_);
  acceptor.watchWith(epoll_, kId);
  const Client before(port_);
  awaitReport();
  acceptor.refuse();
  EXPECT_FALSE(acceptor.next());
  EXPECT_FALSE(acceptor.retryAt());
  EXPECT_EQ(Client(port_).error(), ECONNREFUSED);
  EXPECT_THAT(log_.lines(), IsEmpty());
}

TEST_F(AcceptorTest, WithoutADescriptorTheListenerIsUnwatchedUntilTheRetry) {
  // UndefinedBehaviorSanitizer opens a pipe at the first virtual call of each type (tests/README.md).
  const std::unique_ptr<Log> firstOfItsType = std::make_unique<testkit::RecordingLog>();
  firstOfItsType->write(LogLevel::debug, "a.call", "");
  Acceptor acceptor(listener(), 1, log_);
  acceptor.watchWith(epoll_, kId);
  const Client client(port_);
  awaitReport();
  {
    const testkit::NoDescriptors none;
    EXPECT_FALSE(acceptor.next());
  }
  ASSERT_TRUE(acceptor.retryAt());
  const Acceptor::Moment retryAt = *acceptor.retryAt();
  EXPECT_FALSE(isReported());
  EXPECT_EQ(acceptor.connections(), 0U);
  EXPECT_THAT(log_.lines(), ElementsAre("http.acceptPaused: no connection can be accepted: Too many open files; raise "
                                        "ulimit -n"));
  acceptor.retry(retryAt - std::chrono::milliseconds(1));
  EXPECT_EQ(acceptor.retryAt(), retryAt);
  EXPECT_FALSE(isReported());
  acceptor.retry(retryAt);
  EXPECT_FALSE(acceptor.retryAt());
  EXPECT_TRUE(isReported());
  {
    const testkit::NoDescriptors none;
    EXPECT_FALSE(acceptor.next());
  }
  EXPECT_THAT(log_.lines(), testing::SizeIs(1)) << "a line a minute is enough";
  EXPECT_FALSE(client.isClosed());
  acceptor.retry(*acceptor.retryAt());
  const auto connected = accept(acceptor);
  EXPECT_EQ(acceptor.connections(), 1U);
}

TEST_F(AcceptorTest, AnEighthOfTheDescriptorsIsLeftToTheServersOwnFiles) {
  Acceptor acceptor(listener(), 0, log_);
  acceptor.watchWith(epoll_, kId);
  const Client one(port_);
  const Client two(port_);
  const Client three(port_);
  const FewDescriptors few(160, 22);
  auto first = accept(acceptor);
  const auto second = accept(acceptor);
  EXPECT_FALSE(acceptor.next());
  ASSERT_TRUE(acceptor.retryAt());
  EXPECT_THAT(log_.lines(), ElementsAre(StartsWith("http.acceptPaused: no connection can be accepted: Too many open")));
  EXPECT_FALSE(three.isClosed()) << "the client stays in the queue of the system";
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(file, 140) << "the 20 above the connections are free";
  ::close(file);
  acceptor.retry(*acceptor.retryAt());
  EXPECT_FALSE(acceptor.next());
  first.reset();
  acceptor.retry(*acceptor.retryAt());
  EXPECT_EQ(accept(acceptor)->descriptor, 138);
}

TEST_F(AcceptorTest, WithoutMemoryForAPlaceTheConnectionIsClosed) {
#if JOBQ_SANITIZED_THREADS
  GTEST_SKIP() << "takes the memory away, and ThreadSanitizer has an operator new of its own";
#endif
  Acceptor acceptor(listener(), 1, log_);
  acceptor.watchWith(epoll_, kId);
  const Client lost(port_);
  awaitReport();
  const auto next = [&acceptor]() -> std::optional<Acceptor::Accepted> {
    hasMemory = false;
    try {
      auto accepted = acceptor.next();
      hasMemory = true;
      return accepted;
    } catch (...) {
      hasMemory = true;
      throw;
    }
  };
  EXPECT_THROW((void)next(), std::bad_alloc);
  testkit::waitFor("the connection to be closed", [&lost] { return lost.isClosed(); });
  EXPECT_EQ(acceptor.connections(), 0U);
  const Client later(port_);
  const auto connected = accept(acceptor);
  EXPECT_EQ(acceptor.connections(), 1U) << "the lost connection has kept a place";
}

}  // namespace
}  // namespace jobq
