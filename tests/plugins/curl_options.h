// The options that a transfer sets: the curl_easy_setopt of the test program precedes libcurl's function, also for
// plugins.
#pragma once

#include <curl/curl.h>

#include <map>
#include <string>

namespace jobq::test {

/// The options set during the object's life. One at a time; transfers on any thread.
class CurlOptions {
 public:
  CurlOptions();
  ~CurlOptions();
  CurlOptions(const CurlOptions&) = delete;
  CurlOptions& operator=(const CurlOptions&) = delete;

  /// Returns the last value of an option with a number or a pointer; -1 if the option was not set.
  long number(CURLoption option) const;
  /// Returns the last value of CURLOPT_PROXY or CURLOPT_PROTOCOLS_STR; "(not set)" if the option was not set.
  std::string text(CURLoption option) const;
};

}  // namespace jobq::test
