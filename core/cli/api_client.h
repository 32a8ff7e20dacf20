// The server as jobqctl sees it: a path goes out, the answer's bytes come back, and a refusal is a Failure.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>

#include "jobq/time.h"

namespace Poco::Net {
class HTTPClientSession;
class HTTPRequest;
}  // namespace Poco::Net

namespace jobq::ctl {

/// The body of a 2xx answer, and what its head says about a stream; "" where it says nothing.
struct StreamAnswer {
  std::string body;
  std::string status;   ///< X-Job-Status
  std::string attempt;  ///< X-Job-Attempt
};

/// One connection a call, so that any thread may use it at once. Proxy variables are ignored; certificates of https
/// servers are checked against the authorities of a file, or against the system's (SSL_CERT_FILE names others).
class ApiClient {
 public:
  /// `url` may hold a path, which is put before every path asked for. Throws Failure(usage) when the url is not an http
  /// or https address, or when the key cannot stand in a header. An empty key sends no Authorization. `ca` is a PEM
  /// file with the authorities that may have signed the server's certificate, read at the first call; empty: the
  /// system's.
  ApiClient(std::string url, std::string key, std::string ca = "");

  /// These return the body of a 2xx answer, unchanged. They throw Failure(refused) with the server's own sentence for
  /// any other status, and Failure(unreachable) when the server is silent for 30 s plus `wait`.
  std::string get(const std::string& path) const;
  std::string post(const std::string& path, const std::string& body, Millis wait = Millis{0}) const;
  std::string remove(const std::string& path) const;
  StreamAnswer getStream(const std::string& path) const;

  /// Posts to `path` and writes the answer, a file, to `to`; returns its size in bytes. Throws as above, and
  /// Failure(refused) when `to` takes no more.
  std::uint64_t download(const std::string& path, std::ostream& to, Millis wait) const;

  /// `text` as one segment of a path: everything that could end the segment is percent-encoded.
  static std::string segment(std::string_view text);

 private:
  StreamAnswer invocation(const std::string& method, const std::string& path, const std::string& body,
                          Millis wait) const;
  Poco::Net::HTTPRequest request(const std::string& method, const std::string& path, const std::string& body) const;
  std::unique_ptr<Poco::Net::HTTPClientSession> open(Millis backoff) const;

  const std::string url_;
  const std::string key_;
  const std::string ca_;
  bool secure_ = false;
  std::string host_;
  std::uint16_t port_ = 0;
  std::string prefix_;
};

}  // namespace jobq::ctl
