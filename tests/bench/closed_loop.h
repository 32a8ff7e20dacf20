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

/// What stands in front of a text that has come.
struct Answer {
  long size = 0;        ///< in bytes: 0 when it is not whole yet, -1 when it is an error
  bool closes = false;  ///< the server closes the connection after it
};
using Measure = std::function<Answer(std::string_view)>;

/// What to send after an answer that is not the last of its round; nothing when it is.
using FollowUp = std::function<std::string(std::string_view answer)>;

struct Load {
  std::string host;
  int port = 0;
  int connections = 1;
  double seconds = 0;       ///< the loop ends then,
  std::uint64_t count = 0;  ///< or after so many requests, if that is not 0
  std::string greeting;     ///< sent once on each connection; nothing answers it
  std::string request;
  Measure measure;
  FollowUp followUp;  ///< none: each answer ends its round
};

struct Result {
  std::uint64_t answers = 0;  ///< rounds, if there are follow-ups
  std::uint64_t errors = 0;
  std::string firstError;  ///< what came instead of an answer
  double seconds = 0;
  std::vector<std::uint32_t> micros;  ///< of each answer
};

/// A connection that its server closes after an answer, and says so, is opened again; that time counts as the next
/// request's. Throws std::runtime_error when it cannot connect.
Result run(const Load& load);

/// One line of JSON: rate, p50, p99, longest (microseconds), errors.
std::string toJson(Result& result);

}  // namespace bench
