// A closed loop over many connections in one thread: each sends a request, waits for its whole answer, and goes on.
// Cheap, because it shares the machine with what it measures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// How many bytes the answer in front of the text has: 0 when it is not whole yet, -1 when it is an error.
using Measure = std::function<long(std::string_view)>;

struct Load {
  std::string host;
  int port = 0;
  int connections = 1;
  double seconds = 0;       ///< the loop ends then,
  std::uint64_t count = 0;  ///< or after so many requests, if that is not 0
  std::string greeting;     ///< sent once on each connection; nothing answers it
  std::string request;
  Measure measure;
};

struct Result {
  std::uint64_t answers = 0;
  std::uint64_t errors = 0;
  std::string firstError;  ///< what came instead of an answer
  double seconds = 0;
  std::vector<std::uint32_t> micros;  ///< of each answer
};

/// Throws std::runtime_error when it cannot connect.
Result run(const Load& load);

/// One line of JSON: rate, p50, p99, longest (microseconds), errors.
std::string toJson(Result& result);

}  // namespace bench
