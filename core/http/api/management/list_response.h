// Answers that are JSON arrays, or objects with an array, built item by item.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/http/api/api_request.h"

namespace jobq {

/// Builds a JSON array, alone or as the first member of an object. Beyond OutputRoom::kFree bytes the array draws on
/// the memory for answers as it grows, so that lists requested at once stay within the budget for answers. Used by one
/// thread.
class ListResponse {
 public:
  /// The `request` outlives the object and keeps the drawn memory until the answer has been sent.
  explicit ListResponse(ApiRequest& request) : request_(request) {}
  /// The array is the member `name` of an object. `name` needs no escapes in JSON.
  ListResponse(ApiRequest& request, std::string_view name)
      : request_(request), body_("{\"" + std::string(name) + "\":[") {}

  /// Adds `item`, a JSON text. Returns false if the budget has no memory for the item; finish() then returns the
  /// refusal, and further items are ignored.
  bool add(std::string_view item);

  /// Returns 200 with the array, or 503 with a sentence for the caller. In an object, the members of `others`, a JSON
  /// object with at least one, follow the array. To be called once, at the end.
  ApiResponse finish(std::string_view others = {});

 private:
  ApiRequest& request_;
  std::string body_ = "[";
  const std::size_t begin_ = body_.size();  // of the items
  bool isRefused_ = false;
};

}  // namespace jobq
