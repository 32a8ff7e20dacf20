// A log that keeps its lines, for tests of the log.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jobq/log.h"
#include "jobq/mutex.h"

namespace jobq::testkit {

/// Any thread.
class RecordingLog final : public Log {
 public:
  void write(LogLevel, std::string_view event, std::string_view text) noexcept override {
    Lock lock(mutex_);
    lines_.push_back(std::string(event) + ": " + std::string(text));
  }

  /// Returns the lines so far, oldest first, each as `<event>: <text>`.
  std::vector<std::string> lines() const {
    Lock lock(mutex_);
    return lines_;
  }

  /// Returns the lines as one text, each with a line feed at its end.
  std::string text() const {
    std::string all;
    for (const std::string& line : lines()) all += line + "\n";
    return all;
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::string> lines_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::testkit
