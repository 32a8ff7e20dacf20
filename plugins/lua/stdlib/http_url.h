// The address of a script's HTTP call, parsed by the same library that performs the call, so that all readers agree.
#pragma once

#include <curl/curl.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace jobq::lua {

/// An absolute http or https URL with a host. Used by one thread at a time.
class HttpUrl {
 public:
  static constexpr std::size_t kLongest = 8192;  ///< bytes

  /// Parses `text`. Returns nullopt if `text` is no absolute http or https URL with a host, holds control characters or
  /// is longer than kLongest. Throws std::bad_alloc.
  static std::optional<HttpUrl> read(const std::string& text);

  /// Returns the target of a `Location` found at this address; `location` may be relative. Returns nullopt where read()
  /// would. Throws std::bad_alloc.
  std::optional<HttpUrl> follow(const std::string& location) const;

  /// Returns scheme, host and port in one spelling. Secrets are meant for one origin.
  std::string origin() const;

  /// Returns the handle for CURLOPT_CURLU, owned by the object.
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
