// The receiver's answer while it comes in: what counts of it, and when there has been enough. Whatever a receiver
// sends, this keeps 1 KiB of it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace jobq::webhook_http {

/// One thread.
class Answer {
 public:
  /// A line of a head, its line end included, and the status of the head that it belongs to. False: no more of it.
  bool takeHeadLine(std::string_view line, int status);
  /// A piece of the body. False: no more of it.
  bool takeBody(std::string_view piece);

  /// Of the final answer (no 1xx), once its head is complete; 0 until then.
  int status() const { return status_; }
  bool headTooLarge() const { return headBytes_ > kMaxHead; }
  /// At most the first kMaxReply bytes of the body, as they came.
  std::string& reply() { return reply_; }

  static constexpr std::size_t kMaxReply = 1024;  ///< webhook_transport.h
  static constexpr std::size_t kMaxHead = 64 * 1024;
  /// After so much of the body it is not waited for the rest: the status stands, and a receiver that answers with a
  /// film gets no time.
  static constexpr std::size_t kEnoughBody = 64 * 1024;

 private:
  int status_ = 0;
  std::size_t headBytes_ = 0;  // of all heads, those of 1xx and trailers included
  std::size_t bodyBytes_ = 0;
  std::string reply_;
};

}  // namespace jobq::webhook_http
