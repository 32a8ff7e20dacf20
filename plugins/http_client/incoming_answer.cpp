#include "incoming_answer.h"

#include <algorithm>
#include <charconv>
#include <system_error>

namespace jobq::http_client {

namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::string lowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower;
}

}  // namespace

bool isRedirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

bool IncomingAnswer::addHeadLine(std::string_view line, int status) {
  headBytes_ += line.size();
  if (headTooLarge()) return false;
  if (isHeadComplete()) return true;  // a trailer
  if (isStatusLine_) {
    isStatusLine_ = false;
    return true;
  }
  if (line != "\r\n" && line != "\n") {
    addField(line);
    return true;
  }
  return completeHead(status);
}

void IncomingAnswer::addField(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') {
    if (last_ != nullptr) last_->append(" ").append(trimmed(line));
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == line.npos) return;
  const std::string_view value = trimmed(line.substr(colon + 1));
  const auto [field, isNew] = answer_.headers.try_emplace(lowerCase(trimmed(line.substr(0, colon))), value);
  if (!isNew) field->second.append(", ").append(value);
  if (isNew && field->first == "location") firstLocation_ = value;
  last_ = &field->second;
}

bool IncomingAnswer::completeHead(int status) {
  // 101 is a final status here, because no request asks for a change of protocol.
  if (status >= 100 && status < 200 && status != 101) {
    answer_.headers.clear();
    firstLocation_.clear();
    last_ = nullptr;
    isStatusLine_ = true;
    return true;
  }
  answer_.status = status;
  if (isRedirect(status)) location_ = firstLocation_;
  bodyTooLarge_ = !leadsOn() && announcesTooMuch();
  return !leadsOn() && !bodyTooLarge_;
}

bool IncomingAnswer::announcesTooMuch() const {
  if (bounds_.enough != 0) return false;
  if (answer_.status == 204 || answer_.status == 304) return false;  // the announced body is not sent
  const auto field = answer_.headers.find("content-length");
  if (field == answer_.headers.end()) return false;
  std::uint64_t length = 0;
  const char* const end = field->second.data() + field->second.size();
  const auto [stop, error] = std::from_chars(field->second.data(), end, length);
  return error == std::errc::result_out_of_range || (error == std::errc() && length > bounds_.kept);
}

bool IncomingAnswer::addBody(std::string_view piece) {
  const std::uint64_t room = bounds_.kept - answer_.body.size();
  bodyBytes_ += piece.size();
  bodyTooLarge_ = bounds_.enough == 0 && piece.size() > room;
  if (bodyTooLarge_) return false;
  answer_.body.append(piece.substr(0, room));
  return !hasEnough();
}

}  // namespace jobq::http_client
