// The server's log: one line for each event on standard error, as text or JSON, through Poco's channels and formatters.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "jobq/log.h"

namespace Poco {
class Channel;
}

namespace jobq {

enum class LogFormat { text, json };

/// Any thread may call.
class Logger final : public Log {
 public:
  /// Writes events of `threshold` and above.
  Logger(LogLevel threshold, LogFormat format);
  ~Logger() override;

  /// Never throws: a line that cannot be written is lost. In the text format a line feed becomes the two
  /// characters `\n`, and each other control character except a tab becomes `?`.
  void write(LogLevel level, std::string_view event, std::string_view message) noexcept override;

 private:
  struct Closer {
    void operator()(Poco::Channel* channel) const;
  };
  const LogLevel threshold_;
  std::unique_ptr<Poco::Channel, Closer> channel_;
};

/// Writes each event as `<prefix>.<event>`; the prefix is the name of a plugin, for example. Any thread. `log` outlives
/// the object.
class PrefixedLog final : public Log {
 public:
  PrefixedLog(Log& log, std::string prefix) : log_(log), prefix_(std::move(prefix)) {}
  void write(LogLevel level, std::string_view event, std::string_view message) noexcept override;

 private:
  Log& log_;
  const std::string prefix_;
};

}  // namespace jobq
