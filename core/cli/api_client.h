// HTTP client of jobqctl: sends a path, returns the bytes of the answer, and throws a CommandError for a refusal.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "core/client/http_session.h"
#include "jobq/time.h"

namespace Poco::Net {
class HTTPRequest;
}  // namespace Poco::Net

namespace jobq::cli {

/// The body of a 2xx answer, and the header fields about a stream; a field is empty if the header is absent.
struct StreamAnswer {
  std::string body;
  std::string status;   ///< the header X-Job-Status
  std::string attempt;  ///< the header X-Job-Attempt
};

/// Waits before a call that was refused for its rate is sent again.
class RatePause {
 public:
  virtual ~RatePause() = default;
  /// Returns after `time`. `sentence` is the server's, for a user who waits. Any thread.
  virtual void wait(const std::string& sentence, Millis time) = 0;
};

/// Longest time that a call waits in all while the server refuses the call for its rate.
inline constexpr Millis kLongestRatePause{120'000};

/// Opens a connection for each call, so that any threads may call the functions at once. Proxy variables are ignored.
/// Certificates of https servers are checked against the authorities of a file, or against those of the system
/// (SSL_CERT_FILE names others).
class ApiClient {
 public:
  /// `url` is an http or https address; the path of `url` is put before the path of each call. An empty `key` sends no
  /// Authorization header. `ca` is a PEM file with authorities for the server's certificate, read at the first call; an
  /// empty `ca` means the system's authorities. Throws CommandError(usage) if `url` is not an http or https address, if
  /// the file `ca` does not exist, or if `key` cannot stand in a header.
  /// A call with the answer 429 is sent again after a wait of `pause` for the time of Retry-After, at most
  /// kLongestRatePause in all. A null `pause` makes 429 an error like others; `pause` outlives the client.
  ApiClient(const std::string& url, std::string key, std::string ca = "", RatePause* pause = nullptr);

  /// Returns the address of the server without a slash at its end.
  std::string url() const;

  /// Calls `path` with GET and returns the unchanged body of the 2xx answer. Throws CommandError(refused) with the
  /// server's own sentence for any other status, and CommandError(unreachable) if the server cannot be reached or is
  /// silent for 30 s.
  std::string get(const std::string& path) const;
  /// Posts `body` as JSON to `path` and returns the unchanged body of the 2xx answer. Throws like get(); the server may
  /// be silent for 30 s plus `wait` milliseconds.
  std::string post(const std::string& path, const std::string& body, Millis wait = Millis{0}) const;
  /// Calls `path` with DELETE and returns the unchanged body of the 2xx answer. Throws like get().
  std::string remove(const std::string& path) const;
  /// Calls `path` with GET and returns body and stream header fields of the 2xx answer. Throws like get().
  StreamAnswer getStream(const std::string& path) const;

  /// Posts to `path` and writes the answer, a file, to `to`. Returns the size of the file in bytes. The server may be
  /// silent for 30 s plus `wait` milliseconds. Throws like get(), and CommandError(refused) if writing to `to` fails.
  std::uint64_t download(const std::string& path, std::ostream& to, Millis wait) const;

  /// Returns `text` as one segment of a path: each character that could end the segment is percent-encoded. Throws
  /// CommandError(usage) for an empty text.
  static std::string segment(std::string_view text);
  /// Returns `text` as a value of a query, encoded in the same way. The text may be empty.
  static std::string encode(std::string_view text);

 private:
  StreamAnswer invocation(const std::string& method, const std::string& path, const std::string& body,
                          Millis wait) const;
  Poco::Net::HTTPRequest request(const std::string& method, const std::string& path, const std::string& body) const;

  const ServerAddress server_;
  const std::string key_;
  RatePause* const pause_;
};

}  // namespace jobq::cli
