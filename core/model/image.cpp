#include "core/model/image.h"

#include <Poco/String.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/words.h"
#include "core/model/script_name.h"
#include "jobq/nearest.h"

namespace jobq {
namespace {

constexpr std::string_view kPluginImage = "plugin/";
constexpr std::string_view kLua = "lua/";
constexpr std::size_t kFarthestEdits = 2;

bool isNear(std::string_view image, std::string_view local) {
  if (image == local.substr(local.find('/') + 1)) return true;
  const std::size_t shorter = std::min(image.size(), local.size());
  const std::size_t longer = std::max(image.size(), local.size());
  return longer - shorter <= kFarthestEdits && editDistance(image, local) <= kFarthestEdits;
}

// Returns the image inside the server whose prefix is written in another way, such as Plugin/x or lua:x.
std::optional<std::string> withPrefix(std::string_view image) {
  const std::size_t end = image.find_first_of("/:");
  if (end == std::string_view::npos || !isScriptName(image.substr(end + 1))) return std::nullopt;
  const std::string word(image.substr(0, end));
  for (const auto& [written, prefix] : {std::pair("plugin", kPluginImage), {"plugins", kPluginImage}, {"lua", kLua}}) {
    if (Poco::icompare(word, written) == 0) return std::string(prefix).append(image.substr(end + 1));
  }
  return std::nullopt;
}

}  // namespace

Result<void> checkImageName(const std::string& image) {
  if (image.empty()) return invalid("is missing: name a handler, such as plugin/echo");
  for (const std::string_view prefix : {kPluginImage, kLua}) {
    if (image.starts_with(prefix) && !isScriptName(std::string_view(image).substr(prefix.size()))) {
      return invalid("must have a name that matches [A-Za-z0-9_-]{1,64} after " + std::string(prefix));
    }
  }
  return {};
}

Result<void> checkRemoteImage(const std::string& image, const std::vector<std::string>& local) {
  if (parseImage(image).kind != Image::Kind::remote) return {};
  const bool hasBlank = std::ranges::any_of(image, [](char c) { return c == ' ' || (c >= '\0' && c < ' '); });
  if (hasBlank) return invalid("has a blank or a control character: leave it out");
  std::optional<std::string> meant = withPrefix(image);
  for (auto next = local.begin(); next != local.end() && !meant; ++next) {
    if (isNear(image, *next)) meant = *next;
  }
  if (!meant) return {};
  return invalid("names remote workers, and is close to " + *meant + ": write " + *meant +
                 ", or give the image of the workers another name");
}

Image parseImage(const std::string& image) {
  if (image.starts_with(kPluginImage)) return {Image::Kind::plugin, image.substr(kPluginImage.size())};
  if (image.starts_with(kLua)) return {Image::Kind::lua, image.substr(kLua.size())};
  return {Image::Kind::remote, image};
}

}  // namespace jobq
