#include "core/http/transport/request_head.h"

#include <strings.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "core/base/words.h"

namespace jobq {
namespace {

/// Number of empty lines that a client may send before the request line (RFC 9112, 2.2).
constexpr std::size_t kEmptyLines = 2;

// Faults are exceptions inside this file only, so that each reader function returns just its value.
[[noreturn]] void refuse(int status, std::string sentence) { throw Fault{status, std::move(sentence)}; }

constexpr std::array<bool, 256> kTokenBytes = [] {
  std::array<bool, 256> table{};
  for (int c = 0; c < 256; ++c) {
    const bool isMark =
        c != 0 && std::string_view("!#$%&'*+-.^_`|~").find(static_cast<char>(c)) != std::string_view::npos;
    table[static_cast<std::size_t>(c)] = isMark || isLetterOrDigit(static_cast<char>(c));
  }
  return table;
}();

bool equals(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Calls `use` with each non-empty element of a comma-separated list.
template <class Use>
void eachOf(std::string_view list, Use&& use) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view element = trimmed(list.substr(0, comma));
    if (!element.empty()) use(element);
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
}

/// The lines of a head, without CRLF.
class Lines {
 public:
  explicit Lines(std::string_view bytes) : all_(bytes), rest_(bytes) {}

  std::string_view next() {
    const std::size_t end = rest_.find('\n');
    const bool ends = end != std::string_view::npos;
    const std::size_t size = all_.size() - rest_.size() + (ends ? end + 1 : rest_.size());
    if (size > kMaxHead) {
      if (rest_.size() == all_.size()) refuse(414, "the request line is over 200 KiB: send a shorter target");
      refuse(431, "the request's head is over 200 KiB: send fewer or shorter header fields");
    }
    if (!ends) refuse(400, "the request's head has no end: end it with an empty line");
    if (end == 0 || rest_[end - 1] != '\r')
      refuse(400, "a line of the request's head ends without CR LF: end each line with both");
    const std::string_view line = rest_.substr(0, end - 1);
    rest_.remove_prefix(end + 1);
    return line;
  }

 private:
  const std::string_view all_;
  std::string_view rest_;
};

void readVersion(std::string_view version, RequestHead& head) {
  const bool shaped = version.size() == 8 && version.starts_with("HTTP/") && version[6] == '.' && version[5] >= '0' &&
                      version[5] <= '9' && version[7] >= '0' && version[7] <= '9';
  if (!shaped) refuse(400, "the request line has no HTTP version at its end: write a version such as HTTP/1.1");
  if (version[5] != '1') refuse(505, "the HTTP version is not supported: use HTTP/1.1 or HTTP/1.0");
  head.http10 = version[7] == '0';
  head.keepAlive = !head.http10;
}

/// Returns the path of an absolute target. The host is ignored, because the request reached this server.
std::string_view withoutAuthority(std::string_view target) {
  const std::size_t colon = target.find("://");
  const std::string_view scheme = target.substr(0, colon);
  if (colon == std::string_view::npos || (!equals(scheme, "http") && !equals(scheme, "https"))) {
    refuse(400, "the request's target is not a path: begin it with /");
  }
  const std::string_view rest = target.substr(colon + 3);
  const std::size_t end = rest.find_first_of("/?");
  if (end == 0 || rest.empty())
    refuse(400, "the request's target has no host: write http://host/path, or a path alone");
  if (end == std::string_view::npos) return "/";
  if (rest[end] != '/') refuse(400, "the request's target has no path before its query: write a / before the ?");
  return rest.substr(end);
}

void readTarget(std::string_view target, RequestHead& head) {
  if (target.size() > kMaxTarget) refuse(414, "the request's target is over 128 KiB: send a shorter one");
  for (const char c : target) {
    if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) {
      refuse(400, "the request's target holds a control character: encode it");
    }
  }
  if (head.method == "CONNECT")
    refuse(400, "CONNECT is for proxies, and this server is no proxy: send the request itself");
  if (target == "*" && head.method == "OPTIONS") {
    head.target = target;
  } else {
    head.target = target.starts_with('/') ? target : withoutAuthority(target);
  }
}

void readRequestLine(std::string_view line, RequestHead& head) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  head.method = line.substr(0, first);
  if (!isToken(head.method)) refuse(400, "the request line does not start with a method: write a method such as GET");
  if (first == last)
    refuse(400, "the request line must be method, target and HTTP version: write one space between them");
  readVersion(line.substr(last + 1), head);
  readTarget(line.substr(first + 1, last - first - 1), head);
}

void readField(std::string_view line, RequestHead& head) {
  if (line.front() == ' ' || line.front() == '\t') {
    refuse(400, "a header field is folded over several lines: send it on one");
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !isToken(line.substr(0, colon))) {
    refuse(400, "a header field has no name or no colon: write a name, a colon and a value");
  }
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (!isFieldValue(value)) refuse(400, "a header field's value holds a control character: encode it or leave it out");
  if (head.fields.size() == kMaxFields) refuse(431, "the request has more than 100 header fields: send fewer");
  head.fields.emplace_back(line.substr(0, colon), value);
}

void readContentLength(std::string_view value, RequestHead& head) {
  if (head.contentLength) refuse(400, "the request has more than one Content-Length: send one");
  std::uint64_t length = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), length);
  const bool number = error == std::errc() && end == value.data() + value.size();
  if (!number || length > static_cast<std::uint64_t>(INT64_MAX)) {
    refuse(400, "Content-Length must be a whole number of bytes");
  }
  head.contentLength = length;
}

void readTransferEncoding(std::string_view value, RequestHead& head) {
  bool any = false;
  eachOf(value, [&](std::string_view coding) {
    any = true;
    if (head.chunked) refuse(400, "Transfer-Encoding names a coding after chunked: send chunked alone");
    if (!equals(coding, "chunked"))
      refuse(501, "the transfer encoding is not supported: send chunked, or Content-Length");
    head.chunked = true;
  });
  if (!any) refuse(400, "Transfer-Encoding is empty: send chunked, or Content-Length instead");
}

/// Reads the fields that frame the message, and refuses fields that two readers could understand differently.
void readFraming(RequestHead& head) {
  std::size_t hosts = 0;
  std::size_t keys = 0;
  bool close = false;
  bool keep = false;
  for (const auto& [name, value] : head.fields) {
    if (equals(name, "Content-Length")) {
      readContentLength(value, head);
    } else if (equals(name, "Transfer-Encoding")) {
      readTransferEncoding(value, head);
    } else if (equals(name, "Host")) {
      ++hosts;
      if (value.find_first_of(" \t/?#@,\\<>\"") != std::string_view::npos)
        refuse(400, "Host must be a host and an optional port: leave out everything else");
    } else if (equals(name, "Authorization")) {
      ++keys;
    } else if (equals(name, "Connection")) {
      eachOf(value, [&](std::string_view option) {
        close = close || equals(option, "close");
        keep = keep || equals(option, "keep-alive");
      });
    } else if (equals(name, "Expect")) {
      if (!equals(value, "100-continue"))
        refuse(417, "the expectation is not supported: send 100-continue, or no Expect");
      head.expectsContinue = !head.http10;
    }
  }
  if (head.chunked && head.contentLength) {
    refuse(400, "the request has both Content-Length and Transfer-Encoding: send one of them");
  }
  if (head.chunked && head.http10) refuse(400, "HTTP/1.0 has no Transfer-Encoding: send Content-Length");
  if (keys > 1) refuse(400, "the request has more than one Authorization: send one key");
  if (hosts > 1) refuse(400, "the request has more than one Host: send one");
  if (hosts == 0 && !head.http10) refuse(400, "the request has no Host: send one");
  head.keepAlive = !close && (keep || !head.http10);
}

}  // namespace

bool isToken(std::string_view text) noexcept {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return kTokenBytes[static_cast<unsigned char>(c)]; });
}

bool isFieldValue(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f) || c == '\t'; });
}

bool isProbe(std::string_view head) noexcept {
  for (const std::string_view method : {"GET ", "HEAD "}) {
    if (!head.starts_with(method)) continue;
    head.remove_prefix(method.size());
    return head.starts_with(kProbePath) && head.substr(kProbePath.size()).starts_with(' ');
  }
  return false;
}

HeadScanner::State HeadScanner::scan(std::string_view bytes) {
  for (;;) {
    const std::size_t end = bytes.find('\n', std::max(at_, seen_));
    if (end == std::string_view::npos) {
      seen_ = bytes.size();
      return bytes.size() - start_ > kMaxHead ? State::broken : State::incomplete;
    }
    if (end == at_ || bytes[end - 1] != '\r') return State::broken;
    const bool empty = end == at_ + 1;
    const std::size_t line = std::exchange(at_, end + 1);
    if (empty && lines_ == 0) {
      start_ = at_;
      if (start_ > 2 * kEmptyLines) return State::broken;
      continue;
    }
    if (at_ - start_ > kMaxHead) return State::broken;
    if (empty) return State::complete;
    if (++lines_ > 1 + kMaxFields) return State::broken;
    if (lines_ > 1) continue;
    // A client of a different protocol is answered now and not at the deadline of the head.
    try {
      RequestHead head;
      readRequestLine(bytes.substr(line, end - 1 - line), head);
    } catch (const Fault&) {
      return State::broken;
    }
  }
}

Result<RequestHead, Fault> parseHead(std::string_view bytes) {
  try {
    for (std::size_t i = 0; i < kEmptyLines && bytes.starts_with("\r\n"); ++i) bytes.remove_prefix(2);
    RequestHead head;
    head.fields.reserve(16);
    Lines lines(bytes);
    readRequestLine(lines.next(), head);
    for (std::string_view line = lines.next(); !line.empty(); line = lines.next()) readField(line, head);
    readFraming(head);
    return head;
  } catch (Fault& fault) {
    return std::move(fault);
  }
}

}  // namespace jobq
