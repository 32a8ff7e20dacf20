// The answer of a receiver during its arrival: the parts that count, and the point at which enough has arrived. At most
// 1 KiB of an answer is kept.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jobq::webhook_http {

/// The state of an answer. Not thread-safe.
class Answer {
 public:
  /// Takes a line of a head, with its line end, and the status of the head. Returns false if no more bytes are wanted.
  bool takeHeadLine(std::string_view line, int status);
  /// Takes a piece of the body. Returns false if no more bytes are wanted.
  bool takeBody(std::string_view piece);

  /// Returns the status of the final answer (no 1xx) once its head is complete, and 0 until then.
  int status() const { return status_; }
  bool headTooLarge() const { return headBytes_ > kMaxHead; }
  /// Returns at most the first kMaxReply bytes of the body, unchanged.
  std::string& reply() { return reply_; }

  static constexpr std::size_t kMaxReply = 1024;  ///< the bound of `jobq/webhook_transport.h`
  static constexpr std::size_t kMaxHead = 64 * 1024;
  /// Bytes of the body after which the rest is not awaited: the status stands, and a receiver that sends a huge answer
  /// gets no further time.
  static constexpr std::size_t kEnoughBody = 64 * 1024;

 private:
  int status_ = 0;
  std::size_t headBytes_ = 0;  // sum over all heads, with 1xx answers and trailers
  std::size_t bodyBytes_ = 0;
  std::string reply_;
};

}  // namespace jobq::webhook_http
