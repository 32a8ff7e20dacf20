// Shares of a bound for the endpoints. A key may be for one endpoint alone, so a common bound of all endpoints must not
// let one endpoint use up the places of the others.
#pragma once

#include <cstddef>
#include <map>

#include "jobq/job.h"

namespace jobq {

using CountsByEndpoint = std::map<EndpointId, std::size_t>;

/// Divides `total` among the endpoints: an endpoint with a wish of at most an even share gets the wish, and the others
/// get the rest in even parts, without a remainder of less than one for each. Pure function.
CountsByEndpoint fairShares(const CountsByEndpoint& wanted, std::size_t total);

/// Returns the list of the endpoint behind `last`, and makes the endpoint the new `last`. `lists` is a map with
/// endpoints as keys, and not empty.
template <class Lists>
typename Lists::iterator nextInTurn(Lists& lists, EndpointId& last) {
  auto next = lists.upper_bound(last);
  if (next == lists.end()) next = lists.begin();
  last = next->first;
  return next;
}

/// Places under one bound: an endpoint gets at most half of the places that are left, and the last places are for
/// endpoints with few. One thread at a time.
class EndpointPlaces {
 public:
  /// There are `most` places; the last `reserved` are for endpoints with less than `few`.
  EndpointPlaces(std::size_t most, std::size_t reserved, std::size_t few)
      : most_(most), reserved_(reserved), few_(few) {}

  /// Reserves a place for the endpoint. Returns false without one.
  bool reserve(const EndpointId& endpoint);
  /// Notes places in use for another reason.
  void add(const EndpointId& endpoint, std::size_t count);
  /// Frees all places.
  void clear();

 private:
  const std::size_t most_;
  const std::size_t reserved_;
  const std::size_t few_;
  std::size_t taken_ = 0;
  CountsByEndpoint takenBy_;
};

}  // namespace jobq
