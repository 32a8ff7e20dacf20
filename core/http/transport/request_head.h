// The head of an HTTP request: request line and fields (RFC 9112). Pure and strict: what two readers could understand
// differently is refused, because the difference is where requests are smuggled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace jobq {

inline constexpr std::size_t kMaxHead = 200UL << 10;    ///< core/decisions/http.md: 431 beyond
inline constexpr std::size_t kMaxFields = 100;          ///< 431 beyond
inline constexpr std::size_t kMaxTarget = 128UL << 10;  ///< 414 beyond; worker clients send lines of this length

/// Why a message cannot be served: the status and one sentence for the client.
struct Fault {
  int status = 400;
  std::string sentence;
};

/// The views point into the bytes that were parsed.
struct RequestHead {
  using Field = std::pair<std::string_view, std::string_view>;

  std::string_view method;
  std::string_view target;    ///< "/path?query", or "*"; the authority of an absolute target is gone
  bool http10 = false;        ///< HTTP/1.0; every later 1.x is served as 1.1
  std::vector<Field> fields;  ///< as sent; values without the blanks around them

  std::optional<std::uint64_t> contentLength;
  bool chunked = false;
  bool keepAlive = true;         ///< what the client wants
  bool expectsContinue = false;  ///< waits for `100 Continue` before it sends the body

  bool hasBody() const noexcept { return chunked || contentLength.value_or(0) > 0; }
};

/// Finds the end of a head in bytes that arrive piece by piece. Every byte is looked at once.
class HeadScanner {
 public:
  enum class State {
    incomplete,
    complete,
    broken  ///< no more bytes can make it a head; parseHead() of what is there says why
  };

  /// `bytes`: everything since the start of the request, so each call sees what the last one saw and more. Not asked
  /// again after any other answer than `incomplete`.
  State scan(std::string_view bytes);

  /// Of a complete head, its empty line included.
  std::size_t size() const noexcept { return at_; }

  /// For the next request.
  void restart() noexcept { *this = HeadScanner(); }

 private:
  std::size_t at_ = 0;     // everything before is whole lines
  std::size_t seen_ = 0;   // no line ends between at_ and here
  std::size_t start_ = 0;  // behind the empty lines in front of the request line
  std::size_t lines_ = 0;
};

/// Reads a complete head, or says what is wrong with it; also of a broken one, which is never whole.
std::variant<RequestHead, Fault> parseHead(std::string_view bytes);

/// Whether every byte may stand in the value of a field: no control characters but tabs.
bool isFieldValue(std::string_view text) noexcept;
/// Whether this is the name of a field or a method: a "token".
bool isToken(std::string_view text) noexcept;

}  // namespace jobq
