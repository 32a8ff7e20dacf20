#include "core/base/logger.h"

#include <Poco/DateTimeFormatter.h>
#include <Poco/Message.h>
#include <Poco/PatternFormatter.h>

#include <cstdint>
#include <exception>
#include <new>

#include "jobq/json_writer.h"

namespace jobq {
namespace {

class JsonFormatter final : public Poco::Formatter {
 public:
  void format(const Poco::Message& message, std::string& text) override {
    text = json::object([&message](json::ObjectWriter& out) {
      out.member("time", Poco::DateTimeFormatter::format(message.getTime(), "%Y-%m-%dT%H:%M:%S.%iZ"));
      out.member("level", levelName(message.getPriority()));
      out.member("event", message.getSource());
      out.member("message", message.getText());
    });
  }

 private:
  static const char* levelName(Poco::Message::Priority priority) {
    switch (priority) {
      case Poco::Message::PRIO_DEBUG: return "debug";
      case Poco::Message::PRIO_WARNING: return "warning";
      case Poco::Message::PRIO_ERROR: return "error";
      default: return "information";
    }
  }
};

// Writes one line for each event, whatever text a script or a caller sent: no text can forge a second line.
class LineFormatter final : public Poco::PatternFormatter {
 public:
  LineFormatter() : Poco::PatternFormatter("%Y-%m-%dT%H:%M:%S.%iZ %p %s: %t") {}

  void format(const Poco::Message& message, std::string& text) override {
    Poco::PatternFormatter::format(message, text);
    std::string line;
    for (const char c : text) {
      if (c == '\n') {
        line += "\\n";
      } else {
        line += (c >= 0 && c < ' ' && c != '\t') || c == '\x7f' ? '?' : c;
      }
    }
    text = std::move(line);
  }
};

Poco::Message::Priority toPriority(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return Poco::Message::PRIO_DEBUG;
    case LogLevel::information: return Poco::Message::PRIO_INFORMATION;
    case LogLevel::warning: return Poco::Message::PRIO_WARNING;
    case LogLevel::error: return Poco::Message::PRIO_ERROR;
  }
  return Poco::Message::PRIO_INFORMATION;
}

Poco::Formatter* makeFormatter(LogFormat format) {
  if (format == LogFormat::json) return new JsonFormatter;
  return new LineFormatter;
}

}  // namespace

void Logger::Releaser::operator()(Poco::Formatter* formatter) const { formatter->release(); }

Logger::Logger(LogLevel threshold, LogFormat format, int descriptor)
    : threshold_(threshold), formatter_(makeFormatter(format)), writer_(descriptor, *this) {}

Logger::~Logger() {
  try {
    writer_.reportLosses();
  } catch (const std::exception&) {
    // No memory for the report.
  }
}

std::string Logger::lossLine(std::uint64_t lost) const {
  return lineOf(LogLevel::error, "log.lost",
                std::to_string(lost) +
                    " lines before this one could not be written: let a program read the server's "
                    "standard error, and give its disk space");
}

std::string Logger::lineOf(LogLevel level, std::string_view event, std::string_view message) const {
  std::string line;
  formatter_->format(Poco::Message(std::string(event), std::string(message), toPriority(level)), line);
  return line;
}

void Logger::write(LogLevel level, std::string_view event, std::string_view message) noexcept {
  if (level < threshold_) return;
  try {
    writer_.write(lineOf(level, event, message));
  } catch (const std::exception&) {
    // A failure of the log itself cannot be logged.
  }
}

void PrefixedLog::write(LogLevel level, std::string_view event, std::string_view message) noexcept {
  try {
    log_.write(level, prefix_ + "." + std::string(event), message);
  } catch (const std::bad_alloc&) {
    log_.write(level, event, message);
  }
}

}  // namespace jobq
