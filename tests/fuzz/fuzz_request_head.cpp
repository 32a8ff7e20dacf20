// The head of a request. The size of the pieces makes no difference. An accepted head is unambiguous, and means the
// same when written again in the plainest form.
#include <algorithm>
#include <cctype>
#include <cstdint>

#include "check.h"
#include "core/http/api/target.h"
#include "core/http/transport/request_head.h"

namespace {

using namespace jobq;
using State = HeadScanner::State;

std::pair<State, std::size_t> scanInPieces(std::string_view bytes, std::size_t step) {
  HeadScanner scanner;
  State state = State::incomplete;
  for (std::size_t seen = 0; seen < bytes.size() && state == State::incomplete;) {
    seen = std::min(bytes.size(), seen + step);
    state = scanner.scan(bytes.substr(0, seen));
  }
  return {state, scanner.size()};
}

std::string plain(const RequestHead& head) {
  std::string text(head.method);
  text.append(" ").append(head.target).append(head.http10 ? " HTTP/1.0\r\n" : " HTTP/1.1\r\n");
  for (const auto& [name, value] : head.fields) text.append(name).append(": ").append(value).append("\r\n");
  return text + "\r\n";
}

// An independent judgement made of simple checks.
void judgeAccepted(std::string_view bytes, const RequestHead& head) {
  BELIEVE(!(head.chunked && head.contentLength));
  BELIEVE(!(head.chunked && head.http10));
  BELIEVE(isToken(head.method));
  BELIEVE(head.target == "*" || head.target.front() == '/');
  BELIEVE(head.target.size() <= kMaxTarget && head.fields.size() <= kMaxFields);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    if (c == '\n') BELIEVE(i > 0 && bytes[i - 1] == '\r');
    if (c == '\r') BELIEVE(i + 1 < bytes.size() && bytes[i + 1] == '\n');
    BELIEVE(c >= 0x20 || c == '\t' || c == '\r' || c == '\n');
    BELIEVE(c != 0x7f);
  }
  std::size_t lengths = 0;
  for (const auto& [name, value] : head.fields) {
    BELIEVE(isToken(name) && isFieldValue(value));
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
    if (lower == "content-length") {
      ++lengths;
      BELIEVE(!value.empty() && value.find_first_not_of("0123456789") == std::string_view::npos);
    }
    if (lower == "transfer-encoding") BELIEVE(head.chunked);
  }
  BELIEVE(lengths == (head.contentLength ? 1U : 0U));
}

void judgeAgain(const RequestHead& head) {
  const std::string text = plain(head);
  if (text.size() > kMaxHead) return;
  HeadScanner scanner;
  BELIEVE(scanner.scan(text) == State::complete && scanner.size() == text.size());
  const auto again = parseHead(text);
  BELIEVE(again);
  BELIEVE(again->method == head.method && again->target == head.target && again->fields == head.fields);
  BELIEVE(again->contentLength == head.contentLength && again->chunked == head.chunked);
  BELIEVE(again->keepAlive == head.keepAlive && again->expectsContinue == head.expectsContinue);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto [state, end] = scanInPieces(bytes, std::max<std::size_t>(size, 1));
  for (const std::size_t step : {std::size_t{1}, std::size_t{3}, 1 + size % 17}) {
    const auto pieces = scanInPieces(bytes, step);
    BELIEVE(pieces.first == state && (state != State::complete || pieces.second == end));
  }
  if (state == State::incomplete) return 0;
  const std::string_view head = state == State::complete ? bytes.substr(0, end) : bytes;
  const auto parsed = parseHead(head);
  if (!parsed) {
    const Fault& fault = parsed.failure();
    BELIEVE(fault.status >= 400 && fault.status <= 505 && !fault.sentence.empty());
    return 0;
  }
  BELIEVE(state == State::complete);
  judgeAccepted(head, *parsed);
  judgeAgain(*parsed);
  (void)readTarget(parsed->target);
  return 0;
}
