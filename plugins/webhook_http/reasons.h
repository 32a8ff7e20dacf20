// Why a call was not delivered: one clause in plain words that goes on from "not delivered: ". It never holds the URL,
// a header or a user's name, because reasons are logged and listed.
#pragma once

#include <curl/curl.h>

#include <string>

#include "jobq/time.h"

namespace jobq::webhook_http {

/// No complete head came, and `code` says what libcurl saw; `detail` is its error buffer.
std::string reasonOfFault(CURL* easy, CURLcode code, const std::string& detail);

/// No complete head came in time: at which step it hung.
std::string reasonOfDelay(CURL* easy, Millis timeout);

/// An answer came, and it is no 2xx.
std::string reasonOfStatus(CURL* easy, int status);

/// "10 s", "300 ms".
std::string inWords(Millis time);

/// What the system says of an error number, as a clause: "connection refused".
std::string reasonOfErrno(int number);

}  // namespace jobq::webhook_http
