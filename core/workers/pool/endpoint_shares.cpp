#include "core/workers/pool/endpoint_shares.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace jobq {

CountsByEndpoint fairShares(const CountsByEndpoint& wanted, std::size_t total) {
  std::vector<std::pair<std::size_t, EndpointId>> rising;
  rising.reserve(wanted.size());
  for (const auto& [endpoint, count] : wanted) rising.emplace_back(count, endpoint);
  std::ranges::sort(rising);
  CountsByEndpoint shares;
  std::size_t left = rising.size();
  for (const auto& [count, endpoint] : rising) {
    const std::size_t share = std::min(count, total / left);
    shares[endpoint] = share;
    total -= share;
    --left;
  }
  return shares;
}

bool EndpointPlaces::reserve(const EndpointId& endpoint) {
  std::size_t& present = takenBy_[endpoint];
  if (taken_ >= most_ || (present >= few_ && present + reserved_ >= most_ - taken_)) return false;
  ++present;
  ++taken_;
  return true;
}

void EndpointPlaces::add(const EndpointId& endpoint, std::size_t count) {
  if (count == 0) return;
  takenBy_[endpoint] += count;
  taken_ += count;
}

void EndpointPlaces::clear() {
  takenBy_.clear();
  taken_ = 0;
}

}  // namespace jobq
