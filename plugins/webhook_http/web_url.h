// The URL of a webhook, parsed by the library that will use the URL, so both read the URL alike.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>

namespace jobq::webhook_http {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using WebUrl = std::unique_ptr<CURLU, FreeUrl>;

/// Returns null unless `text` is an absolute http or https URL with a host.
WebUrl readWebUrl(const std::string& text);

/// Returns the host of a URL, without a user's name or any other possible secret. Returns an empty text if there is no
/// host to show.
std::string hostOf(const std::string& text);

}  // namespace jobq::webhook_http
