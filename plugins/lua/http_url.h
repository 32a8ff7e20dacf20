// The address of a script's HTTP call, taken apart by the library that will use it, so that nobody reads it
// differently.
#pragma once

#include <curl/curl.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace jobq::lua {

/// An absolute http or https URL with a host. One thread at a time.
class HttpUrl {
 public:
  static constexpr std::size_t kLongest = 8192;  ///< bytes

  /// Nothing unless the text is such a URL, without control characters.
  static std::optional<HttpUrl> read(const std::string& text);

  /// Where a `Location` found at this address leads, which may be relative; nothing when that is no such URL.
  std::optional<HttpUrl> follow(const std::string& location) const;

  /// Scheme, host and port in one spelling: what a secret is meant for.
  std::string origin() const;

  /// For CURLOPT_CURLU; this object's.
  CURLU* handle() const { return url_.get(); }

 private:
  struct Free {
    void operator()(CURLU* url) const { curl_url_cleanup(url); }
  };
  using Handle = std::unique_ptr<CURLU, Free>;

  explicit HttpUrl(Handle url) : url_(std::move(url)) {}

  Handle url_;
};

}  // namespace jobq::lua
