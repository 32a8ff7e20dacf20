// Reasons of failed transfers: a clause in plain words after "not delivered: " or "could not be fetched: ". A reason
// never holds the URL, a header or a user's name, because reasons are logged and listed.
#pragma once

#include <curl/curl.h>

#include <string>
#include <string_view>

#include "jobq/time.h"

namespace jobq::http_client {

/// The state of a transfer that failed.
struct FailedTransfer {
  CURL* easy = nullptr;
  CURLcode code = CURLE_OK;     ///< the result of libcurl
  std::string_view detail;      ///< the content of libcurl's error buffer
  std::string_view peer;        ///< the noun for the other side
  bool isHeadComplete = false;  ///< the head of the final answer has arrived
};

/// Returns true if the other side has sent a byte. Any thread.
bool isAnswered(const FailedTransfer& failed);

/// Returns the reason of a transfer that libcurl ended. Any thread.
std::string reasonOfFault(const FailedTransfer& failed);

/// Returns the reason of a transfer that did not end within `timeout`: the step at which the transfer hung. Any thread.
std::string reasonOfDelay(const FailedTransfer& failed, Millis timeout);

/// Returns the system's text for an error number as a clause: "connection refused". Any thread.
std::string reasonOfErrno(int number);

}  // namespace jobq::http_client
