// Names as a test wants them: the test program's own getaddrinfo stands before the system's, for libcurl too. No test
// asks a real name server.
#pragma once

#include <string>
#include <vector>

namespace jobq::test {

/// While it lives, `name` resolves to `addresses` (literals). Names that nobody set do not resolve; literals and
/// "localhost" are themselves.
class NameServer {
 public:
  NameServer(const std::string& name, std::vector<std::string> addresses);
  ~NameServer();
  NameServer(const NameServer&) = delete;
  NameServer& operator=(const NameServer&) = delete;
};

/// While it lives, and for 10 s, `name` does not come back from resolving; then it does, without an address.
class SilentNameServer {
 public:
  explicit SilentNameServer(const std::string& name);
  ~SilentNameServer();
  SilentNameServer(const SilentNameServer&) = delete;
  SilentNameServer& operator=(const SilentNameServer&) = delete;

  /// Blocks until somebody is resolving the name.
  void awaitQuestion() const;
};

}  // namespace jobq::test
