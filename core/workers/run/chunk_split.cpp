#include "core/workers/run/chunk_split.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "jobq/json.h"

namespace jobq {
namespace {

// Upper bound for the keys, quotes and braces around the values of a chunk, in bytes.
constexpr std::size_t kFrame = 64;

std::string_view trimmedJson(std::string_view json) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t from = std::min(json.find_first_not_of(kBlanks), json.size());
  return json.substr(from, json.find_last_not_of(kBlanks) + 1 - from);
}

bool isEscapedSurrogate(std::string_view text, std::size_t at, char third) {
  return text.size() >= at + 6 && text[at] == '\\' && text[at + 1] == 'u' && (text[at + 2] | 0x20) == 'd' &&
         std::string_view(third == '8' ? "89abAB" : "cdefCDEF").find(text[at + 3]) != std::string_view::npos;
}

// Returns the length of the character at `at` in the inner text of a JSON string, escaped or plain. A pair of escaped
// surrogates counts as a single character.
std::size_t characterAt(std::string_view text, std::size_t at) {
  if (text[at] == '\\') {
    if (text[at + 1] != 'u') return 2;
    return isEscapedSurrogate(text, at, '8') && isEscapedSurrogate(text, at + 6, 'c') ? 12 : 6;
  }
  const auto lead = static_cast<unsigned char>(text[at]);
  return lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
}

// Splits `text`, the inner text of a JSON string, into inner texts of at most `most` bytes each.
std::vector<std::string_view> pieces(std::string_view text, std::size_t most) {
  std::vector<std::string_view> cut;
  std::size_t from = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = characterAt(text, at);
    if (at + length - from > most) {
      cut.push_back(text.substr(from, at - from));
      from = at;
    }
    at += length;
  }
  cut.push_back(text.substr(from));
  return cut;
}

}  // namespace

std::vector<Chunk> splitChunk(const CheckedChunk& chunk) {
  static_assert(kChunkLimit >= 2 * (kFrame + kMetricsLimit), "each piece has most of its bytes for the output");
  const std::string_view output = trimmedJson(chunk.output());
  const std::string_view metrics = chunk.metrics();
  const std::size_t most = kChunkLimit - kFrame - metrics.size();
  if (output.size() <= most) return {Chunk{std::string(output), std::string(metrics), false}};
  const bool isString = output.front() == '"';
  const std::string literal = isString ? std::string() : json::quoted(output);
  const std::string_view text = isString ? output : std::string_view(literal);
  std::vector<Chunk> chunks;
  for (const std::string_view piece : pieces(text.substr(1, text.size() - 2), most)) {
    chunks.push_back({'"' + std::string(piece) + '"', {}, !isString});
  }
  chunks.back().metrics = metrics;
  return chunks;
}

}  // namespace jobq
