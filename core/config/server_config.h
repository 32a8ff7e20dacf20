// The settings of the HTTP server: the only part of the configuration that core/http/transport knows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <thread>

#include "jobq/time.h"

namespace jobq {

/// Most bytes of all answers over 64 KB while they are made and read; the largest answer has 20 MB.
inline constexpr std::uint64_t kAnswerMemory = 512UL << 20;

/// Returns the default of server.threads: 128 for each processor, at least 128 and at most 1024. A thread stays with a
/// connection that sends requests without a pause, and a busy moment has more threads than processors.
inline int threadsForMachine() noexcept {
  return static_cast<int>(std::clamp(128 * std::thread::hardware_concurrency(), 128U, 1024U));
}
/// Returns the number of threads for requests that stay without work for a minute: 16 for each processor, at most 128.
inline unsigned keptThreads() noexcept { return std::clamp(16 * std::thread::hardware_concurrency(), 16U, 128U); }

/// The part that reads and writes the connections.
enum class TransportKind {
  reactor,  ///< the own transport: idle connections and waiting callers have no thread
  poco      ///< Poco's HTTP server: a thread for each connection
};

/// Settings of the HTTP server and of its shutdown.
struct ServerConfig {
  TransportKind transport = TransportKind::reactor;
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;                   ///< 0: any free port
  int threads = threadsForMachine();           ///< threads for requests; waiting callers and idle connections need none
  int waiting = 100'000;                       ///< most callers that wait for jobs at once
  std::uint64_t bodyMemory = 1UL << 30;        ///< most bytes of all bodies over 1 MB while read
  std::size_t connectionsPerAddress = 10'000;  ///< most connections of one peer address at once; 0: any number
  std::filesystem::path tlsCertificate;        ///< empty: plain HTTP
  std::filesystem::path tlsKey;
  std::set<std::string> corsOrigins;  ///< origins of pages that may call the API; "*": any origin
  Millis keepAlive{75'000};
  Millis streamSilence{15'000};  ///< longest silence of an event stream; a comment line follows
  Millis drain{30'000};          ///< time for running jobs to finish at shutdown

  /// Returns the most callers that wait for jobs at once. Under Poco's server each has a thread, and most threads stay
  /// free for short calls, such as the results of workers.
  std::uint64_t places() const noexcept {
    return static_cast<std::uint64_t>(transport == TransportKind::poco ? std::min(waiting, threads / 4) : waiting);
  }
};

}  // namespace jobq
