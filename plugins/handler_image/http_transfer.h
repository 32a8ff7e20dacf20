// One HTTP exchange, bounded in size and time, ended by a stop, and connected to permitted addresses only
// (jobq/net_guard.h). No proxy, no cookies, no stored credentials.
#pragma once

#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "jobq/time.h"

namespace jobq::image {

/// A PUT signed with AWS SigV4 for S3. The views outlive the transfer.
struct SignedPut {
  std::string_view body;
  std::string_view mediaType;
  std::string_view accessId;
  std::string_view accessSecret;
  std::string_view region;  ///< [a-z0-9-]+
};

struct HttpRequest {
  std::string url;
  std::uint64_t maxBody = 0;  ///< bytes of the reply's body
  Millis timeout{0};          ///< for the whole exchange, redirects included
  long maxRedirects = 0;
  bool allowPrivate = false;
  std::optional<SignedPut> put;  ///< a GET without it
};

struct HttpReply {
  long status = 0;
  std::string body;
};

struct HttpFault {
  bool stopped = false;
  std::string reason;  ///< a clause that goes on from "it failed: ", remedy included; names no secret
};

/// Any thread; blocks. Throws std::bad_alloc only.
std::variant<HttpReply, HttpFault> transfer(const HttpRequest& request, std::stop_token stop);

/// Prepares libcurl. Once a process, before the first transfer; more often does no harm.
void prepareTransfers();

}  // namespace jobq::image
