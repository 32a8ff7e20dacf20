// The messages of libgd. libgd has a single error hook for the whole process and writes to stderr without a hook. The
// hook set here passes each message to the job running on the same thread.
#pragma once

#include <string>
#include <vector>

namespace jobq::image {

/// Collects the messages of its own thread from its construction to its destruction; at most one object a thread.
/// Messages outside the life of an object are dropped.
class GdMessages {
 public:
  GdMessages();
  ~GdMessages();
  GdMessages(const GdMessages&) = delete;
  GdMessages& operator=(const GdMessages&) = delete;

  /// Sets the hook. Called once in a process, before the first call into libgd; further calls are harmless.
  static void install();

  /// Returns the messages, at most 20, one line each.
  const std::vector<std::string>& lines() const { return lines_; }
  /// Returns whether a message contains `words`.
  bool mention(const char* words) const;

  /// Adds a message in a single line, unless the bound is reached.
  void add(std::string line);

 private:
  std::vector<std::string> lines_;
};

}  // namespace jobq::image
