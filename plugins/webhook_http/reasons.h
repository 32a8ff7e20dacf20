// Reasons of failed calls: a clause in plain words after "not delivered: ". A reason never holds the URL, a header or a
// user's name, because reasons are logged and listed.
#pragma once

#include <curl/curl.h>

#include <string>

#include "jobq/time.h"

namespace jobq::webhook_http {

/// Returns the reason if no complete head arrived. `code` is the result of libcurl, `detail` the content of its error
/// buffer.
std::string reasonOfFault(CURL* easy, CURLcode code, const std::string& detail);

/// Returns the reason if no complete head arrived within `timeout`: the step at which the call hung.
std::string reasonOfDelay(CURL* easy, Millis timeout);

/// Returns the reason for an answer whose status is no 2xx.
std::string reasonOfStatus(CURL* easy, int status);

/// Returns a duration such as "10 s" or "300 ms".
std::string inWords(Millis time);

/// Returns the system's text for an error number as a clause: "connection refused".
std::string reasonOfErrno(int number);

}  // namespace jobq::webhook_http
