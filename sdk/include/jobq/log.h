// The log of the server, as plugins see the log. The host decides where lines go and in which format.
#pragma once

#include <string_view>

namespace jobq {

enum class LogLevel { debug, information, warning, error };

/// Any thread. The host owns the log, and the log outlives every plugin object. Lines have no secrets, no job inputs
/// and no job outputs.
class Log {
 public:
  virtual ~Log() = default;

  /// Writes one line. `event` is a stable name for searches ("storage.failed"); `message` is one sentence with fact,
  /// reason and remedy. Keeps no view. Never throws.
  virtual void write(LogLevel level, std::string_view event, std::string_view message) noexcept = 0;
};

}  // namespace jobq
