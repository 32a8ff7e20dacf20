// Names resolved as tests want: the getaddrinfo of the test program precedes the system's function, also for libcurl.
// No test asks a real name server.
#pragma once

#include <string>
#include <vector>

namespace jobq::test {

/// During the object's life, `name` resolves to `addresses` (literals). Other names do not resolve; literals and
/// "localhost" stand for themselves.
class NameServer {
 public:
  NameServer(const std::string& name, std::vector<std::string> addresses);
  ~NameServer();
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
};

/// During the object's life, resolving `name` blocks for up to testkit::kHangDeadline, and then fails without an
/// address.
class SilentNameServer {
 public:
  explicit SilentNameServer(const std::string& name);
  ~SilentNameServer();
  SilentNameServer(const SilentNameServer&) = delete;
  SilentNameServer& operator=(const SilentNameServer&) = delete;

  /// Blocks until a thread is resolving the name. Throws testkit::WaitExpired past the deadline.
  void awaitQuestion() const;
};

}  // namespace jobq::test
