#include "core/plugin/local_images.h"

#include <algorithm>
#include <system_error>

namespace jobq {

std::vector<std::string> localImages(const PluginHost& host, const std::filesystem::path& handlerScripts) {
  std::vector<std::string> images;
  for (const PluginHost::Library& library : host.libraries()) {
    for (const PluginHost::Entry& entry : library.entries) {
      if (entry.kind == PluginKind::handler && entry.name != "lua") images.push_back("plugin/" + entry.name);
    }
  }
  std::error_code ignored;
  for (std::filesystem::directory_iterator file(handlerScripts, ignored), end; file != end; file.increment(ignored)) {
    if (file->path().extension() == ".lua") images.push_back("lua/" + file->path().stem().string());
  }
  std::sort(images.begin(), images.end());  // the order of a folder is not defined
  return images;
}

}  // namespace jobq
