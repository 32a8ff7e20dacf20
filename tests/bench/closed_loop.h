// A closed loop over many connections in one thread: each connection sends a request, waits for the whole answer, and
// goes on. The loop is cheap, because it shares the machine with the measured server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

/// The measure of the answer at the front of the received text.
struct Answer {
  long size = 0;        ///< in bytes: 0 for an incomplete answer, -1 for an error
  bool closes = false;  ///< the server closes the connection after the answer
};
using Measure = std::function<Answer(std::string_view)>;

/// Returns the text to send after an answer within a round; empty after the last answer of a round.
using FollowUp = std::function<std::string(std::string_view answer)>;

struct Load {
  std::string host;
  int port = 0;
  int connections = 1;
  double seconds = 0;       ///< the loop ends then,
  std::uint64_t count = 0;  ///< or after this many requests, if not 0
  std::string greeting;     ///< sent once on each connection; the server does not answer
  std::string request;
  std::size_t numberAt = 0;   ///< place of five digits in `request`, which each request replaces by its number
  std::uint64_t numbers = 0;  ///< modulo this many; 0: the request stays as it is
  Measure measure;
  FollowUp followUp;  ///< absent: each answer ends its round
};

struct Result {
  std::uint64_t answers = 0;  ///< rounds, if there are follow-ups
  std::uint64_t errors = 0;
  std::string firstError;  ///< the received text in place of an answer
  double seconds = 0;
  std::vector<std::uint32_t> micros;  ///< of each answer
};

/// Runs the load. A connection closed by its server after an announcement is opened again; the time for this counts as
/// part of the next request. Throws std::runtime_error if a connection fails.
Result run(const Load& load);

/// Returns a line of JSON: rate, p50, p99, longest (microseconds), errors.
std::string toJson(Result& result);

}  // namespace bench
