// What libgd says while it works. libgd has one error hook for the whole process and writes to stderr without it; this
// sends each message to the job that runs on the thread it came from.
#pragma once

#include <string>
#include <vector>

namespace jobq::image {

/// Listens on its own thread from its construction to its end; one at a time on a thread. Outside of any, messages are
/// dropped.
class GdMessages {
 public:
  GdMessages();
  ~GdMessages();
  GdMessages(const GdMessages&) = delete;
  GdMessages& operator=(const GdMessages&) = delete;

  /// Sets the hook. Once a process, before the first call into libgd; more often does no harm.
  static void install();

  /// At most 20, one line each.
  const std::vector<std::string>& lines() const { return lines_; }
  /// Whether a message holds `words`.
  bool mention(const char* words) const;

  void add(std::string line);

 private:
  std::vector<std::string> lines_;
};

}  // namespace jobq::image
