#include "core/http/api/management/list_response.h"

#include <cstddef>
#include <utility>

#include "core/http/api/error_response.h"

namespace jobq {

bool ListResponse::add(std::string_view item) {
  if (isRefused_) return false;
  const std::size_t size = body_.size() + item.size() + 2;
  // In steps of the free part. A growing text is there twice at each move.
  const std::size_t steps = (size - 1) / OutputRoom::kFree;
  if (!request_.room.holdAtLeast(2 * steps * OutputRoom::kFree)) {
    isRefused_ = true;
    body_ = std::string();
    return false;
  }
  if (body_.size() > begin_) body_ += ',';
  body_ += item;
  return true;
}

ApiResponse ListResponse::finish(std::string_view others) {
  if (isRefused_) {
    return noAnswerMemory(request_.path, "the list");
  }
  body_ += ']';
  if (!others.empty()) {
    body_ += ',';
    body_ += others.substr(1);
  }
  request_.room.noteText(body_.size());
  return {200, std::move(body_)};
}

}  // namespace jobq
