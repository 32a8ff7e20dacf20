// The text of an event stream (the HTML standard, "Server-sent events").
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jobq {

/// Returns true if the value of a header Accept has the media type text/event-stream, with a weight above 0.
bool acceptsEventStream(std::string_view accept);

/// Events that leave in parts of at most 1 MB. One thread.
class EventText {
 public:
  /// Adds an event. An empty `name` means an event of the name `message`; an empty `id` leaves the last id of the
  /// client as it is. Both are single lines. `data` may have line ends, each of which begins a further data line.
  void add(std::string_view name, std::string_view id, std::string_view data);

  /// Adds a comment of a single line.
  void addComment(std::string_view text);

  /// Returns true if all parts have left.
  bool empty() const noexcept { return text_.empty(); }

  /// Returns the bytes of the events that have not left whole.
  std::size_t size() const noexcept { return text_.size(); }

  /// Removes and returns the next part.
  std::string removePart();

 private:
  std::string text_;      // a carriage return stands for a line end within data
  std::size_t sent_ = 0;  // bytes of text_ in earlier parts
};

}  // namespace jobq
