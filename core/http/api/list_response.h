// Answers that are JSON arrays, built item by item.
#pragma once

#include <string>
#include <string_view>

#include "core/http/api/api_request.h"

namespace jobq {

/// Builds a JSON array. Beyond OutputRoom::kFree bytes the array draws on the memory for answers as it grows, so that
/// lists requested at once stay within the budget for answers. Used by one thread.
class ListResponse {
 public:
  /// The `request` outlives the object and keeps the drawn memory until the answer has been sent.
  explicit ListResponse(ApiRequest& request) : request_(request) {}

  /// Adds `item`, a JSON text. Returns false if the budget has no memory for the item; finish() then returns the
  /// refusal, and further items are ignored.
  bool add(std::string_view item);

  /// Returns 200 with the array, or 503 with a sentence for the caller. To be called once, at the end.
  ApiResponse finish();

 private:
  ApiRequest& request_;
  std::string body_ = "[";
  bool isRefused_ = false;
};

}  // namespace jobq
