// Connections of the programs of the command line to a server, by http or https.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "jobq/time.h"

namespace Poco::Net {
class HTTPClientSession;
class HTTPResponse;
}  // namespace Poco::Net

namespace jobq::cli {

/// Time for which a server may be silent before an answer to a call that does not wait.
inline constexpr Millis kAnswerLimit{30'000};

/// The address of a server, parsed.
struct ServerAddress {
  std::string url;  ///< as written by the user, without the prefix of an API at its end
  bool isSecure = false;
  std::string host;
  std::uint16_t port = 0;
  std::string prefix;  ///< path of `url` without a slash at the end, put before the path of each call
  std::string ca;      ///< PEM file with authorities for the server's certificate; empty means the system's
};

/// Parses an http or https address. Throws CommandError(usage) for any other text, and if the file `ca` of an https
/// address does not exist.
ServerAddress readServerAddress(const std::string& url, std::string ca);

/// Throws CommandError(usage) if `key` cannot stand in a header.
void checkKey(std::string_view key);

/// Returns a session with the server. A call of the session fails after `silence` milliseconds without a byte of the
/// server. Throws Poco::Exception if an https server cannot be reached. Any thread.
std::unique_ptr<Poco::Net::HTTPClientSession> openSession(const ServerAddress& server, Millis silence);

/// Returns the sentence in the body of a refusal: the queue API answers {"error": "..."}, the management API
/// {"message": "..."}. Another body is replaced by a sentence with the status.
std::string refusalSentence(const Poco::Net::HTTPResponse& response, const std::string& body);

/// Throws CommandError(unreachable) if the body of the answer has another size than announced: an answer that ends
/// early looks complete to Poco.
void checkWhole(const Poco::Net::HTTPResponse& response, std::uint64_t size);

}  // namespace jobq::cli
