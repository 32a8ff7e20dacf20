// Answers that are JSON arrays, built an item at a time.
#pragma once

#include <string>
#include <string_view>

#include "core/http/api/api_request.h"

namespace jobq {

/// Beyond kFreeBody the array draws on the memory for answers as it grows, so that lists which are asked for at once
/// hold no more of it than answers may. One thread.
class ListResponse {
 public:
  /// The call outlives the object, and keeps what was drawn until its answer was sent.
  explicit ListResponse(ApiRequest& call) : call_(call) {}

  /// Adds an item, which is JSON text. Returns false when there is no memory for it: then the reply is the refusal, and
  /// nothing more need be added.
  bool add(std::string_view item);

  /// Returns 200 with the array, or 503 with a sentence that says what to do. The last call.
  ApiResponse finish();

 private:
  ApiRequest& call_;
  std::string body_ = "[";
  bool isRefused_ = false;
};

}  // namespace jobq
