// The answer to a script's HTTP call while it comes in: what is kept of it, and when it is too much.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace jobq::lua {

/// An HTTP answer, whatever its status.
struct HttpAnswer {
  int status = 0;
  std::string body;                            ///< decoded of its transfer coding only
  std::map<std::string, std::string> headers;  ///< names in lower case; the values of one name joined by ", "
};

/// One thread.
class IncomingAnswer {
 public:
  static constexpr std::size_t kMostHead = 64 * 1024;  ///< bytes of all heads of a call

  /// `headBefore`: bytes of heads that came before this answer in the same call.
  IncomingAnswer(std::uint64_t maxBody, std::size_t headBefore) : maxBody_(maxBody), headBytes_(headBefore) {}

  /// A line of a head, its line end included, and the status of the head that it belongs to. False: no more of it.
  bool takeHeadLine(std::string_view line, int status);
  /// A piece of the body. False: no more of it.
  bool takeBody(std::string_view piece);

  /// The head of the final answer (no 1xx) has come.
  bool isHeadComplete() const { return answer_.status != 0; }
  std::size_t headBytes() const { return headBytes_; }
  bool headTooLarge() const { return headBytes_ > kMostHead; }
  bool bodyTooLarge() const { return bodyTooLarge_; }
  /// Where a redirect leads, as it was written; empty when the answer is none.
  const std::string& location() const { return location_; }
  HttpAnswer& answer() { return answer_; }

 private:
  void addField(std::string_view line);
  bool completeHead(int status);
  bool announcesTooMuch() const;

  const std::uint64_t maxBody_;
  std::size_t headBytes_;
  bool isStatusLine_ = true;     // the next line is the first of a head
  std::string* last_ = nullptr;  // the value that a line may go on with
  std::string firstLocation_;
  std::string location_;
  bool bodyTooLarge_ = false;
  HttpAnswer answer_;
};

}  // namespace jobq::lua
