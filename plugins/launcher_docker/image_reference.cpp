#include "image_reference.h"

#include <algorithm>
#include <cstddef>

namespace jobq::docker {
namespace {

constexpr std::size_t kLongestName = 255;
constexpr std::size_t kLongestTag = 128;
constexpr std::size_t kShortestHash = 32;
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kSmallLetters = "abcdefghijklmnopqrstuvwxyz";
constexpr std::string_view kCapitalLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";

bool isIn(char c, std::string_view set) { return set.find(c) != std::string_view::npos; }
bool isSmall(char c) { return isIn(c, kSmallLetters) || isIn(c, kDigits); }
bool isLetterOrDigit(char c) { return isSmall(c) || isIn(c, kCapitalLetters); }

// A part of the path: words of small letters and digits, with '.', '_', '__' or any number of '-' between two words.
bool isPathPart(std::string_view part) {
  if (part.empty() || !isSmall(part.front()) || !isSmall(part.back())) return false;
  for (std::size_t at = 0; at < part.size();) {
    const std::size_t next =
        std::find_if(part.begin() + static_cast<std::ptrdiff_t>(at), part.end(), isSmall) - part.begin();
    const std::string_view between = part.substr(at, next - at);
    const bool isDashes = between.find_first_not_of('-') == between.npos;
    if (!isDashes && between != "." && between != "_" && between != "__") return false;
    at = next + 1;
  }
  return true;
}

bool isRegistry(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  const std::string_view port = colon == host.npos ? std::string_view("0") : host.substr(colon + 1);
  const std::string_view name = host.substr(0, colon);
  if (port.empty() || !std::all_of(port.begin(), port.end(), [](char c) { return isIn(c, kDigits); })) return false;
  return !name.empty() && isLetterOrDigit(name.front()) && isLetterOrDigit(name.back()) &&
         std::all_of(name.begin(), name.end(), [](char c) { return isLetterOrDigit(c) || c == '.' || c == '-'; });
}

// The first part of a name is a registry if the part cannot belong to a path, as in Docker.
bool looksLikeRegistry(std::string_view part) {
  return part == "localhost" ||
         std::any_of(part.begin(), part.end(), [](char c) { return c == '.' || c == ':' || isIn(c, kCapitalLetters); });
}

bool isName(std::string_view name) {
  if (name.empty() || name.size() > kLongestName) return false;
  const std::size_t slash = name.find('/');
  if (slash != name.npos && looksLikeRegistry(name.substr(0, slash))) {
    if (!isRegistry(name.substr(0, slash))) return false;
    name.remove_prefix(slash + 1);
  }
  for (std::size_t end = 0; end != name.npos; name.remove_prefix(end == name.npos ? 0 : end + 1)) {
    end = name.find('/');
    if (!isPathPart(name.substr(0, end))) return false;
  }
  return true;
}

bool isTag(std::string_view tag) {
  return !tag.empty() && tag.size() <= kLongestTag && tag.front() != '.' && tag.front() != '-' &&
         std::all_of(tag.begin(), tag.end(),
                     [](char c) { return isLetterOrDigit(c) || c == '_' || c == '.' || c == '-'; });
}

bool isDigest(std::string_view digest) {
  const std::size_t colon = digest.find(':');
  if (colon == digest.npos || colon == 0) return false;
  const std::string_view hash = digest.substr(colon + 1);
  return std::all_of(digest.begin(), digest.begin() + static_cast<std::ptrdiff_t>(colon), isLetterOrDigit) &&
         hash.size() >= kShortestHash && hash.find_first_not_of("0123456789abcdefABCDEF") == hash.npos;
}

}  // namespace

std::optional<ImageReference> readImageReference(std::string_view text) {
  ImageReference image;
  if (const std::size_t at = text.find('@'); at != text.npos) {
    image.digest = text.substr(at + 1);
    if (!isDigest(image.digest)) return std::nullopt;
    text = text.substr(0, at);
  }
  const std::size_t colon = text.rfind(':');
  // A colon before a slash belongs to the port of the registry.
  if (colon != text.npos && text.find('/', colon) == text.npos) {
    image.tag = text.substr(colon + 1);
    if (!isTag(image.tag)) return std::nullopt;
    text = text.substr(0, colon);
  }
  if (!isName(text)) return std::nullopt;
  image.name = text;
  return image;
}

std::string_view registryIn(std::string_view image) {
  const std::size_t slash = image.find('/');
  return slash != image.npos && looksLikeRegistry(image.substr(0, slash)) ? image.substr(0, slash) : std::string_view();
}

std::string versionOf(const ImageReference& image) {
  if (!image.digest.empty()) return image.digest;
  return image.tag.empty() ? "latest" : image.tag;
}

}  // namespace jobq::docker
