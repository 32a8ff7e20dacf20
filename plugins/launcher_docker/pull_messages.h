// The answer to a pull: JSON objects, each in a line. A failure comes inside an answer with status 200.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "docker_socket.h"

namespace jobq::docker {

/// Collects the first error of a pull. Used by one thread.
class PullMessages final : public BodySink {
 public:
  /// Adds a piece of the answer. Returns true: the answer is read to the end.
  bool addPiece(std::string_view piece) override;

  /// Returns the first error of the whole lines so far, as a clause; no value without an error.
  const std::optional<std::string>& error() const { return error_; }

  /// Reads a last line without an end. The answer has ended.
  void finish();

 private:
  void readLine(std::string_view line);

  std::string line_;  // the begun line, of at most kLongestLine bytes
  std::optional<std::string> error_;
};

}  // namespace jobq::docker
