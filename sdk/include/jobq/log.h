// The log as plugins see it. The host decides where lines go and in which format.
#pragma once

#include <string_view>

namespace jobq {

enum class LogLevel { debug, information, warning, error };

/// Any thread; never throws; does not keep the views. No secret, no job input and no job output goes in here.
class Log {
 public:
  virtual ~Log() = default;

  /// `event` is a stable name to search for ("storage.failed"); `message` one sentence: what, why, remedy.
  virtual void write(LogLevel level, std::string_view event, std::string_view message) noexcept = 0;
};

}  // namespace jobq
