#include "core/http/api/list_response.h"

#include <cstddef>
#include <utility>

#include "core/http/api/error_response.h"
#include "core/http/api/exchange.h"

namespace jobq {

bool ListResponse::add(std::string_view item) {
  if (isRefused_) return false;
  const std::size_t size = body_.size() + item.size() + 2;
  const std::size_t held = kFreeBody + request_.answerMemory.amount();
  if (size > held && request_.answers != nullptr) {
    const std::size_t steps = (size - held + kFreeBody - 1) / kFreeBody;
    if (!request_.answerMemory.grow(*request_.answers, steps * kFreeBody)) {
      isRefused_ = true;
      body_ = std::string();
      return false;
    }
  }
  if (body_.size() > 1) body_ += ',';
  body_ += item;
  return true;
}

ApiResponse ListResponse::finish() {
  if (isRefused_) {
    return unavailable(request_.path, "too many large answers are being read now: ask for the list again in a moment");
  }
  return {200, std::move(body_) + "]"};
}

}  // namespace jobq
