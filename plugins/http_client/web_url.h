// An http or https URL, parsed by the library that performs the transfer, so that both read the URL alike.
#pragma once

#include <curl/curl.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace jobq::http_client {

/// The end of the sentence about a URL refused by WebUrl::read(): "input.url must be ...".
inline constexpr const char* kUrlExpected = "an absolute http or https URL with a host";

/// An absolute http or https URL with a host. Used by one thread at a time.
class WebUrl {
 public:
  static constexpr std::size_t kLongest = 8192;  ///< bytes

  /// Parses `text`. Returns nullopt if `text` is no absolute http or https URL with a host, holds blanks or control
  /// characters, or is longer than kLongest. Throws std::bad_alloc.
  static std::optional<WebUrl> read(const std::string& text);

  /// Returns the target of a `Location` found at this address; `location` may be relative. Returns nullopt where read()
  /// would. The user and the password stay for a target of the same origin. Throws std::bad_alloc.
  std::optional<WebUrl> follow(const std::string& location) const;

  /// Returns the host as libcurl connects to it: an address of numbers in its usual spelling, an IPv6 address in
  /// brackets, a name as it was written.
  std::string host() const;

  /// Returns the port in decimal; without a port in the URL the port of the scheme.
  std::string port() const;

  /// Returns scheme, host and port in one spelling. Secrets are meant for one origin.
  std::string origin() const;

  /// Returns scheme, host, port and path, for messages. A query or a password may be a secret, and other people read
  /// messages.
  std::string shown() const;

  /// Returns true if the text had no user, password, query or fragment, not even an empty one: a path can be appended.
  bool isBare() const { return isBare_; }

  /// Returns the handle for CURLOPT_CURLU, owned by the object.
  CURLU* handle() const { return url_.get(); }

 private:
  struct Free {
    void operator()(CURLU* url) const { curl_url_cleanup(url); }
  };
  using Handle = std::unique_ptr<CURLU, Free>;

  WebUrl(Handle url, bool isBare) : url_(std::move(url)), isBare_(isBare) {}

  void keepLoginOf(const WebUrl& before);

  Handle url_;
  bool isBare_;
};

}  // namespace jobq::http_client
