// The server's log: one line for each event on standard error, as text or JSON, through Poco's formatters.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/line_writer.h"
#include "jobq/log.h"

namespace Poco {
class Formatter;
}

namespace jobq {

enum class LogFormat { text, json };

/// Any thread may call.
class Logger final : public Log, private LossReport {
 public:
  /// Writes events of `threshold` and above to the descriptor, which stays open and outlives the object.
  Logger(LogLevel threshold, LogFormat format, int descriptor = STDERR_FILENO);
  ~Logger() override;

  /// Never throws: a line that cannot be written is lost (core/base/line_writer.h). In the text format a line feed
  /// becomes the two characters `\n`, and each other control character except a tab becomes `?`.
  void write(LogLevel level, std::string_view event, std::string_view message) noexcept override;

 private:
  struct Releaser {
    void operator()(Poco::Formatter* formatter) const;
  };
  std::string lossLine(std::uint64_t lost) const override;
  std::string lineOf(LogLevel level, std::string_view event, std::string_view message) const;

  const LogLevel threshold_;
  const std::unique_ptr<Poco::Formatter, Releaser> formatter_;
  LineWriter writer_;
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
