// A webhook's URL, taken apart by the library that will use it, so that nobody reads it differently.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>

namespace jobq::webhook_http {

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
using WebUrl = std::unique_ptr<CURLU, FreeUrl>;

/// Null unless it is an absolute http or https URL with a host.
WebUrl readWebUrl(const std::string& text);

/// The host of a URL, without a user's name or anything else that could be secret; empty when there is none to show.
std::string hostOf(const std::string& text);

}  // namespace jobq::webhook_http
