#include "core/http/api/docs_page.h"

#include <cstddef>
#include <string_view>

#include "core/base/sha256.h"
#include "jobq/base64.h"

namespace jobq {
namespace {

// Returns the source for a policy that allows the element of the page between two tags.
std::string sourceOf(std::string_view begin, std::string_view end) {
  const std::string_view page = docsPage();
  const std::size_t from = page.find(begin) + begin.size();
  const std::string digest = sha256Bytes(page.substr(from, page.find(end, from) - from));
  return std::string("'sha256-").append(toBase64(digest)).append("'");
}

}  // namespace

const std::string& docsPolicy() {
  static const std::string kPolicy =
      std::string("default-src 'none'; script-src ")
          .append(sourceOf("<script>", "</script>"))
          .append("; style-src ")
          .append(sourceOf("<style>", "</style>"))
          .append(
              "; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
              "require-trusted-types-for 'script'; trusted-types 'none'");
  return kPolicy;
}

}  // namespace jobq
