// The log of a container as sent by Docker, and the lines of the log for a reason.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jobq::docker {

inline constexpr std::size_t kLongestClause = 300;  ///< bytes of a foreign text in a reason

/// Reads frames that come in pieces. A frame has a head of 8 bytes: the number of the stream, three zeros, and the
/// length of the content, most significant byte first. One thread.
class FrameReader {
 public:
  /// Returns the contents of the piece.
  std::string read(std::string_view piece);

 private:
  std::string head_;      // begun head
  std::size_t left_ = 0;  // bytes of the content still to come
};

/// Returns the joined contents of the frames. A cut frame gives its existing bytes. Pure.
std::string textOfFrames(std::string_view frames);

/// Returns the last line with more than blanks, as a clause: see asClause(). Pure.
std::string lastLineOf(std::string_view text);

/// Returns a foreign text as a part of a sentence: control characters become blanks, blanks at both ends are left out,
/// and a text beyond kLongestClause bytes is cut between two characters. Pure.
std::string asClause(std::string_view text);

}  // namespace jobq::docker
