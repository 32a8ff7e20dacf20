// Finds the known name that a misspelt one probably means, for messages. The functions are pure, and any thread may
// call them.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
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

namespace detail {

constexpr bool isUpperLetter(char c) { return c >= 'A' && c <= 'Z'; }

/// Returns the text with the letters of ASCII in lower case.
inline std::string inLowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (isUpperLetter(c)) c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

/// Returns the words of a name such as `server.keepAlive` or `execution-timeout`, in lower case.
inline std::vector<std::string> wordsOf(std::string_view name) {
  std::vector<std::string> words;
  bool continues = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    const bool isLetter = isUpperLetter(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (isLetter && (!continues || (isUpperLetter(c) && !isUpperLetter(name[i - 1])))) words.emplace_back();
    if (isLetter) words.back() += inLowerCase(name.substr(i, 1));
    continues = isLetter;
  }
  return words;
}

/// Length from which a word says enough to be a reason for a hint: `timeout`, but not `max`.
inline constexpr std::size_t kTellingWord = 4;

/// Returns true for equal words, and for a telling word with an ending, such as `worker` and `workers`.
inline bool areAlike(std::string_view word, std::string_view other) {
  const std::size_t shorter = std::min(word.size(), other.size());
  return word == other || (shorter >= kTellingWord && word.substr(0, shorter) == other.substr(0, shorter));
}

inline bool hasAlike(const std::vector<std::string>& words, std::string_view word) {
  return std::any_of(words.begin(), words.end(), [word](const std::string& one) { return areAlike(one, word); });
}

/// Returns true if the last parts of two dotted names share a telling word, and the other name has a section of
/// `word`, if there are any.
inline bool shareTellingWord(std::string_view word, std::string_view other) {
  const std::size_t end = word.rfind('.') + 1;
  const std::vector<std::string> words = wordsOf(word.substr(end));
  const std::vector<std::string> sections = wordsOf(word.substr(0, end));
  const std::vector<std::string> others = wordsOf(other);
  const std::vector<std::string> last = wordsOf(other.substr(other.rfind('.') + 1));
  const bool hasSection = std::any_of(sections.begin(), sections.end(),
                                      [&others](const std::string& section) { return hasAlike(others, section); });
  return (sections.empty() || hasSection) && std::any_of(words.begin(), words.end(), [&last](const std::string& one) {
           return one.size() >= kTellingWord && hasAlike(last, one);
         });
}

/// Returns the number of words that are not in `others`. Units such as Ms and Gb do not count.
inline std::size_t countUnlike(const std::vector<std::string>& words, const std::vector<std::string>& others) {
  constexpr std::size_t kUnit = 2;
  return static_cast<std::size_t>(std::count_if(words.begin(), words.end(), [&others](const std::string& one) {
    return one.size() > kUnit && !hasAlike(others, one);
  }));
}

/// Returns the length of the sections that begin two dotted names alike, such as 7 for server.port and server.host.
inline std::size_t commonSections(std::string_view word, std::string_view other) {
  const auto end = std::mismatch(word.begin(), word.end(), other.begin(), other.end()).first;
  const std::size_t dot = word.substr(0, static_cast<std::size_t>(end - word.begin())).rfind('.');
  return dot == std::string_view::npos ? 0 : dot + 1;
}

/// The relation of a word to a candidate; the least is the nearest.
struct NameMatch {
  enum class Kind { slip, sharedWord, fewEdits, none } kind = Kind::none;
  std::size_t distance = SIZE_MAX;  ///< edits; for a shared word the words that one of the names lacks
  std::size_t shortness = 0;        ///< for a shared word: a longer name comes first, with more to leave out

  auto operator<=>(const NameMatch&) const = default;
};

inline NameMatch matchOf(std::string_view word, std::string_view candidate) {
  // Letters of common sections must not make up for the letters of a different name.
  const std::size_t sections = commonSections(word, candidate);
  word.remove_prefix(sections);
  candidate.remove_prefix(sections);
  const std::size_t edits = editDistance(inLowerCase(word), inLowerCase(candidate));
  const std::size_t length = word.size();
  if (edits <= length / 4) return {NameMatch::Kind::slip, edits, 0};
  if (shareTellingWord(word, candidate)) {
    const std::vector<std::string> words = wordsOf(word);
    const std::vector<std::string> others = wordsOf(candidate);
    return {NameMatch::Kind::sharedWord, countUnlike(words, others) + countUnlike(others, words),
            SIZE_MAX - candidate.size()};
  }
  if (edits <= std::max<std::size_t>(2, length / 3) && 2 * edits <= std::max(length, candidate.size())) {
    return {NameMatch::Kind::fewEdits, edits, 0};
  }
  return {};
}

}  // namespace detail

/// Returns the candidate that `word` probably means, the first of several: a slip of few letters, else a name with the
/// most words in common, the longest of several, else a name a third of the letters away. Upper and lower case are
/// alike. The result is empty if no candidate is near. `candidates` is a list of texts that outlives the result.
template <class Names>
std::string_view nearest(std::string_view word, const Names& candidates) {
  std::string_view best;
  detail::NameMatch least;
  for (const std::string_view candidate : candidates) {
    if (const detail::NameMatch match = detail::matchOf(word, candidate); match < least) {
      least = match;
      best = candidate;
    }
  }
  return best;
}

/// Returns the end of a sentence about an unknown name: "; the nearest one is " and nearest(), or `otherwise` if no
/// candidate is near.
template <class Names>
std::string nearestHint(std::string_view word, const Names& candidates, std::string_view otherwise = {}) {
  const std::string_view near = nearest(word, candidates);
  return near.empty() ? std::string(otherwise) : "; the nearest one is " + std::string(near);
}

}  // namespace jobq
