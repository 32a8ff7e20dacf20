// An HTTP exchange bounded in size and time, ended by a stop, and connected to permitted addresses only
// (`jobq/net_guard.h`). A transfer uses no proxy, no cookies and no stored credentials.
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

/// A PUT signed with AWS SigV4 for S3. The viewed texts outlive the transfer.
struct SignedPut {
  std::string_view body;
  std::string_view mediaType;
  std::string_view accessId;
  std::string_view accessSecret;
  std::string_view region;  ///< [a-z0-9-]+
};

struct HttpRequest {
  std::string url;
  std::uint64_t maxBody = 0;  ///< most bytes in the body of the reply
  Millis timeout{0};          ///< bound of the whole exchange, redirects included
  long maxRedirects = 0;
  bool allowPrivate = false;
  std::optional<SignedPut> put;  ///< a PUT if set, otherwise a GET
};

struct HttpReply {
  long status = 0;
  std::string body;
};

struct HttpFault {
  bool stopped = false;
  std::string reason;  ///< a clause after "it failed: ", with the remedy and without secrets
};

/// Runs the exchange and blocks until its end. Any thread. Throws std::bad_alloc only.
std::variant<HttpReply, HttpFault> transfer(const HttpRequest& request, std::stop_token stop);

/// Prepares libcurl. Called once in a process, before the first transfer; further calls are harmless.
void prepareTransfers();

}  // namespace jobq::image
