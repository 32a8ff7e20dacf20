// The answer of a server while the bytes arrive: collects the kept parts and enforces the bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace jobq::http_client {

/// An HTTP answer of any status.
struct Answer {
  int status = 0;                              ///< of the final answer (no 1xx); 0 until its head is complete
  std::string body;                            ///< only the transfer coding is decoded
  std::map<std::string, std::string> headers;  ///< names in lower case; the values of one name joined by ", "
};

/// Returns true if an answer of the status leads to another address by its Location.
bool isRedirect(int status);

/// Bounds of the body of an answer.
struct BodyBounds {
  std::uint64_t kept = 0;  ///< greatest number of kept bytes
  /// 0: a body of more than `kept` bytes fails the transfer. Otherwise the bytes beyond `kept` are dropped, and after
  /// this number of bytes the rest is not awaited, which is no failure.
  std::uint64_t enough = 0;
};

/// Collects the answer of one request. Used by one thread.
class IncomingAnswer {
 public:
  static constexpr std::size_t kMostHead = 64 * 1024;  ///< bytes of all heads of a transfer, with 1xx and trailers

  /// `followsRedirects`: the body of a redirect is not awaited. `headBefore`: bytes of heads received earlier in the
  /// same transfer.
  IncomingAnswer(BodyBounds bounds, bool followsRedirects, std::size_t headBefore)
      : bounds_(bounds), followsRedirects_(followsRedirects), headBytes_(headBefore) {}

  /// Adds a line of a head with its line end, and the status of the head. Returns false if no more bytes are wanted.
  bool addHeadLine(std::string_view line, int status);
  /// Adds a piece of the body. Returns false if no more bytes are wanted.
  bool addBody(std::string_view piece);

  /// Returns true if the head of the final answer (no 1xx) has arrived.
  bool isHeadComplete() const { return answer_.status != 0; }
  /// Returns the bytes of all heads of the transfer so far.
  std::size_t headBytes() const { return headBytes_; }
  bool headTooLarge() const { return headBytes_ > kMostHead; }
  bool bodyTooLarge() const { return bodyTooLarge_; }
  /// Returns true if the rest of the answer was left unread without a failure: a redirect that will be followed, or a
  /// body of BodyBounds::enough bytes.
  bool hasEnough() const { return leadsOn() || (bounds_.enough != 0 && bodyBytes_ >= bounds_.enough); }
  /// Returns true if the answer is a redirect that will be followed.
  bool leadsOn() const { return followsRedirects_ && !location_.empty(); }
  /// Returns the target of a redirect exactly as received, or an empty string if the answer is no redirect.
  const std::string& location() const { return location_; }
  Answer& answer() { return answer_; }

 private:
  void addField(std::string_view line);
  /// Returns false if no more bytes are wanted.
  bool completeHead(int status);
  /// Returns true if the field Content-Length is greater than BodyBounds::kept, and such a body is a failure.
  bool announcesTooMuch() const;

  const BodyBounds bounds_;
  const bool followsRedirects_;
  std::size_t headBytes_;
  std::uint64_t bodyBytes_ = 0;
  bool isStatusLine_ = true;     // the next line begins a head
  std::string* last_ = nullptr;  // the value that a folded line continues
  std::string firstLocation_;
  std::string location_;
  bool bodyTooLarge_ = false;
  Answer answer_;
};

}  // namespace jobq::http_client
