#include "core/auth/authorization.h"

#include <strings.h>

namespace jobq {
namespace {

constexpr std::string_view kBearer = "Bearer";

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Returns true if the value begins with the word Bearer.
bool hasBearer(std::string_view authorization) {
  const std::string_view word = authorization.substr(0, authorization.find(' '));
  return word.size() == kBearer.size() && strncasecmp(word.data(), kBearer.data(), kBearer.size()) == 0;
}

bool isQuote(char c) { return c == '"' || c == '\''; }

}  // namespace

std::string_view secretOf(std::string_view authorization) {
  const bool hasKey = authorization.size() > kBearer.size() && hasBearer(authorization);
  return trimmed(hasKey ? authorization.substr(kBearer.size()) : authorization);
}

std::string describeRefusedKey(std::string_view authorization) {
  constexpr const char* kRemedy = "send Authorization: Bearer <key>";
  const std::string_view secret = secretOf(authorization);
  if (secret.empty() || (secret.size() == kBearer.size() && hasBearer(secret))) {
    return std::string("the API key is missing: ") + kRemedy;
  }
  if (isQuote(secret.front()) || isQuote(secret.back())) {
    return std::string("the API key is in quotes: ") + kRemedy + " without quotes";
  }
  if (!hasBearer(authorization) && secret.find(' ') != std::string_view::npos) {
    return std::string("the scheme of Authorization is not Bearer: ") + kRemedy;
  }
  return std::string("the API key is invalid or lacks permission: ") + kRemedy;
}

}  // namespace jobq
