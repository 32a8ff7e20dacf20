#include "core/http/error_reply.h"

#include "jobq/json.h"

namespace jobq {

Reply errorReply(std::string_view path, int status, std::string_view sentence) {
  const bool management = path == "/v1" || path.starts_with("/v1/");
  return {status, std::string(management ? "{\"message\":" : "{\"error\":") + json::quoted(sentence) + "}"};
}

Reply unavailable(std::string_view path, std::string_view sentence) {
  Reply reply = errorReply(path, 503, sentence);
  reply.headers.emplace_back("Retry-After", "1");
  return reply;
}

}  // namespace jobq
