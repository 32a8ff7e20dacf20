// The nearest known name of a misspelt one, for messages. Pure functions: any thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

namespace jobq {

/// Returns the number of characters to insert, remove or replace that turn one word into the other. Takes time in
/// proportion to the product of both lengths: a caller bounds words from outside. Throws only std::bad_alloc.
inline std::size_t editDistance(std::string_view word, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 1; i <= word.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t kept = diagonal + (word[i - 1] == other[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({kept, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// Returns the candidate nearest to `word` by editDistance(), the first of equally near ones, or an empty text without
/// candidates. `candidates` is a list of texts that outlives the result.
template <class Names>
std::string_view nearest(std::string_view word, const Names& candidates) {
  std::string_view best;
  std::size_t least = SIZE_MAX;
  for (const std::string_view candidate : candidates) {
    if (const std::size_t distance = editDistance(word, candidate); distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

}  // namespace jobq
