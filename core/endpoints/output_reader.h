// The output of launched workers, as shown in responses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "jobq/job.h"
#include "jobq/time.h"

namespace jobq {

inline constexpr std::size_t kMostOutputLines = 1'000;        ///< kept of a worker; the newest stay
inline constexpr std::size_t kMostOutputBytes = 256UL << 10;  ///< in the lines kept of a worker
inline constexpr std::size_t kLongestOutputLine = 4UL << 10;  ///< bytes; a longer line becomes several lines

/// A line of a worker's output.
struct OutputLine {
  std::uint64_t number = 0;  ///< from 1 on, for each worker
  Instant at{};              ///< when the server received the line
  std::string text;          ///< without the line end; may have bytes that are not UTF-8
};

/// A part of a worker's output.
struct OutputPart {
  std::vector<OutputLine> lines;
  bool hasMore = false;               ///< further lines exist already
  std::optional<std::string> reason;  ///< a clause about the end of the worker, after the last line
};

/// Any thread may call the functions.
class OutputReader {
 public:
  virtual ~OutputReader() = default;

  /// Returns lines with numbers above `after`, the oldest first, at most `most`; no value for a worker without output
  /// here.
  virtual std::optional<OutputPart> readAfter(const EndpointId& endpoint, const WorkerId& worker, std::uint64_t after,
                                              std::size_t most) const = 0;
  /// Returns the number after which the newest `count` lines begin, and 0 for a worker without output here.
  virtual std::uint64_t startOfTail(const WorkerId& worker, std::size_t count) const = 0;
};

}  // namespace jobq
