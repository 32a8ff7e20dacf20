// The answer to an HTTP call of a script while the bytes arrive: collects the kept parts and enforces the limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace jobq::lua {

/// An HTTP answer of any status.
struct HttpAnswer {
  int status = 0;
  std::string body;                            ///< only the transfer coding is decoded
  std::map<std::string, std::string> headers;  ///< names in lower case; the values of one name joined by ", "
};

/// Collects the answer of one request. Used by one thread.
class IncomingAnswer {
 public:
  static constexpr std::size_t kMostHead = 64 * 1024;  ///< bytes of all heads of a call

  /// `maxBody`: limit of the body in bytes. `headBefore`: bytes of heads received earlier in the same call.
  IncomingAnswer(std::uint64_t maxBody, std::size_t headBefore) : maxBody_(maxBody), headBytes_(headBefore) {}

  /// Takes a line of a head with its line end, and the status of the head. Returns false if no more bytes are wanted.
  bool takeHeadLine(std::string_view line, int status);
  /// Takes a piece of the body. Returns false if no more bytes are wanted.
  bool takeBody(std::string_view piece);

  /// Returns true if the head of the final answer (no 1xx) has arrived.
  bool isHeadComplete() const { return answer_.status != 0; }
  /// Returns the bytes of all heads of the call so far.
  std::size_t headBytes() const { return headBytes_; }
  bool headTooLarge() const { return headBytes_ > kMostHead; }
  bool bodyTooLarge() const { return bodyTooLarge_; }
  /// Returns the target of a redirect exactly as received, or an empty string if the answer is no redirect.
  const std::string& location() const { return location_; }
  HttpAnswer& answer() { return answer_; }

 private:
  void addField(std::string_view line);
  bool completeHead(int status);
  bool announcesTooMuch() const;

  const std::uint64_t maxBody_;
  std::size_t headBytes_;
  bool isStatusLine_ = true;     // the next line begins a head
  std::string* last_ = nullptr;  // the value that a folded line continues
  std::string firstLocation_;
  std::string location_;
  bool bodyTooLarge_ = false;
  HttpAnswer answer_;
};

}  // namespace jobq::lua
