#include "core/cli/api_client.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/Net/HTTPSClientSession.h>
#include <Poco/Net/RejectCertificateHandler.h>
#include <Poco/Net/SSLManager.h>
#include <Poco/Net/SecureStreamSocket.h>
#include <Poco/Net/SocketAddress.h>
#include <Poco/Net/StreamSocket.h>
#include <Poco/StreamCopier.h>
#include <Poco/Timespan.h>
#include <Poco/URI.h>

#include <algorithm>
#include <filesystem>
#include <istream>
#include <variant>

#include "core/cli/exit_code.h"
#include "jobq/json.h"

namespace jobq::cli {
namespace {

using Poco::Net::HTTPRequest;
using Poco::Net::HTTPResponse;

constexpr Millis kWaitLimit{30'000};
constexpr Millis kConnectTimeout{10'000};

Poco::Timespan timespan(Millis duration) { return {Poco::Timespan::TimeDiff{duration.count()} * 1'000}; }

// VERIFY_STRICT, because Poco's relaxed mode accepts any certificate from a host that resolves to the local machine.
// The whole process shares a context, because a process has one address and therefore one file of authorities.
const Poco::Net::Context::Ptr& trustedContext(const std::string& ca) {
  static const Poco::Net::Context::Ptr kContext = [&ca] {
    Poco::Net::Context::Ptr context(new Poco::Net::Context(Poco::Net::Context::TLS_CLIENT_USE, ca,
                                                           Poco::Net::Context::VERIFY_STRICT, 9, ca.empty()));
    Poco::Net::SSLManager::instance().initializeClient(nullptr, new Poco::Net::RejectCertificateHandler(false),
                                                       context);
    return context;
  }();
  return kContext;
}

// Poco's https session makes the TLS handshake before setting its timeouts, so that a silent server would block the
// session for ever. SecureSession attaches a socket with timeouts from the start and checks the result of the
// handshake, because Poco continues after a failed handshake.
class SecureSession final : public Poco::Net::HTTPSClientSession {
 public:
  SecureSession(const std::string& host, std::uint16_t port, const std::string& ca, Millis backoff)
      : HTTPSClientSession(host, port, trustedContext(ca)) {
    Poco::Net::StreamSocket plain;
    plain.connect(Poco::Net::SocketAddress(host, port), timespan(kConnectTimeout));
    plain.setReceiveTimeout(timespan(kConnectTimeout));
    auto secure = Poco::Net::SecureStreamSocket::attach(plain, host, trustedContext(ca));
    if (secure.completeHandshake() < 0) throw Poco::TimeoutException("the TLS handshake did not end");
    secure.setReceiveTimeout(timespan(backoff));
    secure.setSendTimeout(timespan(kWaitLimit));
    attachSocket(secure);
  }
};

// The queue API answers {"error": "..."}, the management API {"message": "..."}.
std::string refusal(const HTTPResponse& response, const std::string& body) {
  const auto scanned = json::read(body);
  if (const auto* document = std::get_if<json::Document>(&scanned)) {
    for (const char* name : {"error", "message"}) {
      const auto member = document->find(name);
      const auto sentence = member ? json::toText(*member) : std::nullopt;
      if (sentence) return *sentence;
    }
  }
  return "the server answered " + std::to_string(static_cast<int>(response.getStatus())) + " " + response.getReason();
}

// An answer that ends early looks complete to Poco.
void checkWhole(const HTTPResponse& response, std::uint64_t size) {
  if (response.hasContentLength() && static_cast<std::uint64_t>(response.getContentLength64()) != size) {
    throw CommandError(ExitCode::unreachable, "the connection ended in the middle of the server's answer");
  }
}

bool isSuccess(const HTTPResponse& response) {
  const int status = static_cast<int>(response.getStatus());
  return status >= 200 && status <= 299;
}

std::string receiveText(std::istream& stream, const HTTPResponse& response) {
  std::string answer;
  if (response.getStatus() != HTTPResponse::HTTP_NO_CONTENT) {
    Poco::StreamCopier::copyToString(stream, answer, 65'536);
    checkWhole(response, answer.size());
  }
  if (!isSuccess(response)) throw CommandError(ExitCode::refused, refusal(response, answer));
  return answer;
}

StreamAnswer exchange(Poco::Net::HTTPClientSession& session, HTTPRequest& request, const std::string& body) {
  session.sendRequest(request) << body;
  HTTPResponse response;
  std::istream& stream = session.receiveResponse(response);
  std::string answer = receiveText(stream, response);
  return {std::move(answer), response.get("X-Job-Status", ""), response.get("X-Job-Attempt", "")};
}

// Without Content-Length the completeness of a file cannot be checked.
std::uint64_t receiveFile(Poco::Net::HTTPClientSession& session, HTTPRequest& request, std::ostream& to) {
  session.sendRequest(request);
  HTTPResponse response;
  std::istream& stream = session.receiveResponse(response);
  if (!isSuccess(response)) (void)receiveText(stream, response);
  if (!response.hasContentLength() || response.getContentType() != "application/octet-stream") {
    throw CommandError(ExitCode::unreachable, "the answer is not a file: check that the address is a jobq server's");
  }
  const auto size = static_cast<std::uint64_t>(Poco::StreamCopier::copyStream64(stream, to, 65'536));
  if (!to) throw CommandError(ExitCode::refused, "the file cannot be written: is the disk full?");
  checkWhole(response, size);
  return size;
}

}  // namespace

ApiClient::ApiClient(std::string url, std::string key, std::string ca)
    : url_(std::move(url)), key_(std::move(key)), ca_(std::move(ca)) {
  try {
    const Poco::URI address(url_);
    secure_ = address.getScheme() == "https";
    host_ = address.getHost();
    port_ = address.getPort();
    prefix_ = address.getPath();
    if ((!secure_ && address.getScheme() != "http") || host_.empty()) throw Poco::SyntaxException(url_);
  } catch (const Poco::Exception&) {
    throw CommandError(ExitCode::usage, "'" + url_ + "' is not an address: write it like http://127.0.0.1:8000");
  }
  while (prefix_.ends_with('/')) prefix_.pop_back();
  if (secure_ && !ca_.empty() && !std::filesystem::is_regular_file(ca_)) {
    throw CommandError(ExitCode::usage,
                       "the file of certificate authorities '" + ca_ + "' cannot be read: check --ca or JOBQ_CA");
  }
  if (!std::all_of(key_.begin(), key_.end(), [](char c) { return c > ' ' && c <= '~'; })) {
    throw CommandError(ExitCode::usage, "the key holds blanks or characters that no key has: copy it again");
  }
}

std::string ApiClient::url() const { return url_.substr(0, url_.find_last_not_of('/') + 1); }

std::string ApiClient::get(const std::string& path) const { return getStream(path).body; }

StreamAnswer ApiClient::getStream(const std::string& path) const {
  return invocation(HTTPRequest::HTTP_GET, path, "", Millis{0});
}

std::string ApiClient::post(const std::string& path, const std::string& body, Millis wait) const {
  return invocation(HTTPRequest::HTTP_POST, path, body, wait).body;
}

std::string ApiClient::remove(const std::string& path) const {
  return invocation(HTTPRequest::HTTP_DELETE, path, "", Millis{0}).body;
}

std::string ApiClient::segment(std::string_view text) {
  std::string encoded;
  Poco::URI::encode(std::string(text), "!#$&'()*+,/:;=?@[]", encoded);
  return encoded;
}

StreamAnswer ApiClient::invocation(const std::string& method, const std::string& path, const std::string& body,
                                   Millis wait) const {
  HTTPRequest asked = request(method, path, body);
  try {
    const auto session = open(kWaitLimit + wait);
    return exchange(*session, asked, body);
  } catch (const Poco::Exception& error) {
    throw CommandError(ExitCode::unreachable, "cannot reach the server at " + url_ + ": " + error.displayText());
  }
}

std::uint64_t ApiClient::download(const std::string& path, std::ostream& to, Millis wait) const {
  HTTPRequest asked = request(HTTPRequest::HTTP_POST, path, "");
  try {
    const auto session = open(kWaitLimit + wait);
    return receiveFile(*session, asked, to);
  } catch (const Poco::Exception& error) {
    throw CommandError(ExitCode::unreachable, "cannot reach the server at " + url_ + ": " + error.displayText());
  }
}

HTTPRequest ApiClient::request(const std::string& method, const std::string& path, const std::string& body) const {
  HTTPRequest request(method, prefix_ + path, HTTPRequest::HTTP_1_1);
  request.set("Accept", "application/json");
  if (!key_.empty()) request.set("Authorization", "Bearer " + key_);
  if (method == HTTPRequest::HTTP_POST) {
    request.setContentType("application/json");
    request.setContentLength64(static_cast<Poco::Int64>(body.size()));
  }
  return request;
}

std::unique_ptr<Poco::Net::HTTPClientSession> ApiClient::open(Millis backoff) const {
  if (secure_) return std::make_unique<SecureSession>(host_, port_, ca_, backoff);
  auto session = std::make_unique<Poco::Net::HTTPClientSession>(host_, port_);
  session->setTimeout(timespan(kConnectTimeout), timespan(kWaitLimit), timespan(backoff));
  return session;
}

}  // namespace jobq::cli
