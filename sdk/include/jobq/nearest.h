// Finds the known name that is nearest to a misspelt one, for messages. The functions are pure, and any thread may call
// them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

namespace jobq {

/// Returns the smallest number of bytes to insert, remove or replace that turn one word into the other. The time grows
/// with the product of both lengths, so the caller limits the length of words from outside. Throws only std::bad_alloc.
inline std::size_t editDistance(std::string_view word, std::string_view other) {
  // After round i, `row[j]` is the distance between the first i bytes of `word` and the first j bytes of `other`.
  // `diagonal` is the former `row[j - 1]`.
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), 0U);
  for (std::size_t i = 1; i <= word.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const std::size_t keptOrReplaced = diagonal + (word[i - 1] == other[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({keptOrReplaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

/// Returns the candidate with the least editDistance() to `word`, the first of several. The result is empty if there
/// are no candidates. `candidates` is a list of texts that outlives the result.
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
