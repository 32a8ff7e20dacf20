#include "answer.h"

namespace jobq::webhook_http {

bool Answer::takeHeadLine(std::string_view line, int status) {
  headBytes_ += line.size();
  if (headTooLarge()) return false;
  const bool blank = line == "\r\n" || line == "\n";
  // Status 101 is final here: the request asked for no other protocol.
  const bool interim = status >= 100 && status < 200 && status != 101;
  if (blank && !interim) status_ = status;
  return true;
}

bool Answer::takeBody(std::string_view piece) {
  reply_.append(piece.substr(0, kMaxReply - reply_.size()));
  bodyBytes_ += piece.size();
  return bodyBytes_ < kEnoughBody;
}

}  // namespace jobq::webhook_http
