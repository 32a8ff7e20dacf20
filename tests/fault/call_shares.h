// Shares of the calls of a storage: a proof that fails each call in its turn runs in four parts at the same time.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

namespace jobq::fault {

/// Returns the four shares of each storage, such as memory_1. The texts live as long as the process.
inline std::vector<const char*> sharesOf(const std::vector<const char*>& storages) {
  static std::deque<std::string> texts;
  std::vector<const char*> shares;
  for (const char* storage : storages) {
    for (int share = 1; share <= 4; ++share) {
      shares.push_back(texts.emplace_back(storage + ("_" + std::to_string(share))).c_str());
    }
  }
  return shares;
}

/// A day on a database server takes three times as long: only the nightly tier, with its many seeds, plays each call
/// there, and the other tiers play one call in eight. Returns 1 or 8.
inline std::uint64_t sparseness() {
  const char* const seeds = std::getenv("JOBQ_SEEDS");
  return seeds != nullptr && std::atoi(seeds) >= 1'000 ? 1 : 8;
}

}  // namespace jobq::fault
