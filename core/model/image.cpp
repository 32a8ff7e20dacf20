#include "core/model/image.h"

#include <string_view>

#include "core/model/script_name.h"

namespace jobq {
namespace {

constexpr std::string_view kPluginImage = "plugin/";
constexpr std::string_view kLua = "lua/";

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

Image parseImage(const std::string& image) {
  if (image.starts_with(kPluginImage)) return {Image::Kind::plugin, image.substr(kPluginImage.size())};
  if (image.starts_with(kLua)) return {Image::Kind::lua, image.substr(kLua.size())};
  return {Image::Kind::remote, image};
}

}  // namespace jobq
