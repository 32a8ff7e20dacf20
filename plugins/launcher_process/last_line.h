// The last line of a worker's output, for the reason of the worker's end.
#pragma once

#include <string>
#include <string_view>

namespace jobq::process {

/// Keeps the last 4 KiB of an output. One thread uses the object.
class LastLine {
 public:
  void add(std::string_view output);

  /// Returns the last line with more than blanks, at most 200 bytes of valid UTF-8 without control characters, or an
  /// empty text. A carriage return ends a line, too: progress bars write many.
  std::string text() const;

 private:
  std::string tail_;
};

}  // namespace jobq::process
