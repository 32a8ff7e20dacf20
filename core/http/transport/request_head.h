// Parses the head of an HTTP request: request line and fields (RFC 9112). Pure and strict. A head that two readers
// could understand differently is refused, because request smuggling lives on such differences.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/result.h"

namespace jobq {

inline constexpr std::size_t kMaxHead = 200UL << 10;  ///< bytes; 431 beyond (`core/http/API.md`)
inline constexpr std::size_t kMaxFields = 100;        ///< 431 beyond
/// Bytes; 414 beyond. Clients of workers send lines of this length.
inline constexpr std::size_t kMaxTarget = 128UL << 10;

/// The reason why a message cannot be served: the status and a sentence for the client.
struct Fault {
  int status = 400;
  std::string sentence;
};

/// A parsed head. The views point into the parsed bytes, which outlive the head.
struct RequestHead {
  using Field = std::pair<std::string_view, std::string_view>;

  std::string_view method;
  std::string_view target;    ///< "/path?query", or "*"; without the authority of an absolute target
  bool http10 = false;        ///< HTTP/1.0; every later 1.x is served as 1.1
  std::vector<Field> fields;  ///< as sent; values without surrounding blanks

  std::optional<std::uint64_t> contentLength;
  bool chunked = false;
  bool keepAlive = true;         ///< the client wants to keep the connection
  bool expectsContinue = false;  ///< the client waits for `100 Continue` before sending the body

  /// Returns true if the head announces a body: chunks, or a length above 0.
  bool hasBody() const noexcept { return chunked || contentLength.value_or(0) > 0; }
};

/// Finds the end of a head in bytes that arrive piece by piece. Each byte is inspected once. One thread.
class HeadScanner {
 public:
  enum class State {
    incomplete,
    complete,
    broken  ///< no further bytes can make a head; parseHead() returns the reason
  };

  /// Returns the state of `bytes`, which are all bytes since the start of the request: each call gets the bytes of the
  /// former call and further ones. No call follows a result other than `incomplete` before restart().
  State scan(std::string_view bytes);

  /// Returns the size of a complete head in bytes, including the empty line.
  std::size_t size() const noexcept { return at_; }

  /// Prepares for the next request.
  void restart() noexcept { *this = HeadScanner(); }

 private:
  std::size_t at_ = 0;     // whole lines end here
  std::size_t seen_ = 0;   // no line ends between at_ and here
  std::size_t start_ = 0;  // end of the empty lines before the request line
  std::size_t lines_ = 0;
};

/// Returns the parsed head. Fails if the head is broken or incomplete. Any thread.
Result<RequestHead, Fault> parseHead(std::string_view bytes);

/// The path of the request of a supervisor: alive or not.
inline constexpr std::string_view kProbePath = "/healthz";
/// Returns true if the head asks for kProbePath. The reactor thread serves this request, which is quick, also without a
/// crowd, because the answer must not wait for a thread. Any thread.
bool isProbe(std::string_view head) noexcept;

/// Returns true if all bytes may stand in the value of a field: no control characters except tabs.
bool isFieldValue(std::string_view text) noexcept;
/// Returns true if `text` is a token, which is the form of methods and field names.
bool isToken(std::string_view text) noexcept;

}  // namespace jobq
