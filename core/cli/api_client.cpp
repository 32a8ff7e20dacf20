#include "core/cli/api_client.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/NumberParser.h>
#include <Poco/StreamCopier.h>
#include <Poco/URI.h>

#include <algorithm>
#include <istream>
#include <utility>

#include "core/client/exit_code.h"

namespace jobq::cli {
namespace {

using Poco::Net::HTTPRequest;
using Poco::Net::HTTPResponse;

constexpr const char* kNoKey =
    " (no key was given: set JOBQ_KEY, or --key; the first key of a server is in the file admin.key of its data.dir)";

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
  return answer;
}

// Returns the time of Retry-After if the call was refused for its rate, or 0. The API counts in whole seconds, at least
// 1 (core/http/API.md, "Headers of limits").
Millis pauseOf(const HTTPResponse& response) {
  constexpr unsigned kSecond = 1'000;
  unsigned seconds = 0;
  if (response.getStatus() != HTTPResponse::HTTP_TOO_MANY_REQUESTS) return Millis(0);
  const bool isNumber = Poco::NumberParser::tryParseUnsigned(response.get("Retry-After", ""), seconds);
  return isNumber ? std::min(Millis(std::int64_t{kSecond} * seconds), kLongestRatePause + Millis(1)) : Millis(0);
}

std::string exchange(Poco::Net::HTTPClientSession& session, HTTPRequest& request, const std::string& body,
                     HTTPResponse& response) {
  session.sendRequest(request) << body;
  return receiveText(session.receiveResponse(response), response);
}

// Without Content-Length the completeness of a file cannot be checked.
std::uint64_t receiveFile(Poco::Net::HTTPClientSession& session, HTTPRequest& request, std::ostream& to) {
  session.sendRequest(request);
  HTTPResponse response;
  std::istream& stream = session.receiveResponse(response);
  if (!isSuccess(response)) {
    throw CommandError(ExitCode::refused, refusalSentence(response, receiveText(stream, response)));
  }
  if (!response.hasContentLength() || response.getContentType() != "application/octet-stream") {
    throw CommandError(ExitCode::unreachable, "the answer is not a file: check that the address is a jobq server's");
  }
  const auto size = static_cast<std::uint64_t>(Poco::StreamCopier::copyStream64(stream, to, 65'536));
  if (!to) throw CommandError(ExitCode::refused, "the file cannot be written: is the disk full?");
  checkWhole(response, size);
  return size;
}

}  // namespace

ApiClient::ApiClient(const std::string& url, std::string key, std::string ca, RatePause* pause)
    : server_(readServerAddress(url, std::move(ca))), key_(std::move(key)), pause_(pause) {
  checkKey(key_);
}

std::string ApiClient::url() const { return server_.url.substr(0, server_.url.find_last_not_of('/') + 1); }

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
  if (text.empty()) throw CommandError(ExitCode::usage, "an id or a name on the command line is empty: give one");
  return encode(text);
}

std::string ApiClient::encode(std::string_view text) {
  std::string encoded;
  Poco::URI::encode(std::string(text), "!#$&'()*+,/:;=?@[]", encoded);
  return encoded;
}

StreamAnswer ApiClient::invocation(const std::string& method, const std::string& path, const std::string& body,
                                   Millis wait) const {
  HTTPRequest asked = request(method, path, body);
  for (Millis paused{0};;) {
    HTTPResponse response;
    std::string answer;
    try {
      answer = exchange(*openSession(server_, kAnswerLimit + wait), asked, body, response);
    } catch (const Poco::Exception& error) {
      throw CommandError(ExitCode::unreachable,
                         "cannot reach the server at " + server_.url + ": " + error.displayText());
    }
    if (isSuccess(response)) {
      return {std::move(answer), response.get("X-Job-Status", ""), response.get("X-Job-Attempt", "")};
    }
    std::string sentence = refusalSentence(response, answer);
    if (key_.empty() && response.getStatus() == HTTPResponse::HTTP_UNAUTHORIZED) sentence += kNoKey;
    const Millis pause = pauseOf(response);
    paused += pause;
    if (pause_ == nullptr || pause == Millis(0) || paused > kLongestRatePause)
      throw CommandError(ExitCode::refused, sentence);
    pause_->wait(sentence, pause);
  }
}

std::uint64_t ApiClient::download(const std::string& path, std::ostream& to, Millis wait) const {
  HTTPRequest asked = request(HTTPRequest::HTTP_POST, path, "");
  try {
    const auto session = openSession(server_, kAnswerLimit + wait);
    return receiveFile(*session, asked, to);
  } catch (const Poco::Exception& error) {
    throw CommandError(ExitCode::unreachable, "cannot reach the server at " + server_.url + ": " + error.displayText());
  }
}

HTTPRequest ApiClient::request(const std::string& method, const std::string& path, const std::string& body) const {
  HTTPRequest request(method, server_.prefix + path, HTTPRequest::HTTP_1_1);
  request.set("Accept", "application/json");
  if (!key_.empty()) request.set("Authorization", "Bearer " + key_);
  if (method == HTTPRequest::HTTP_POST) {
    request.setContentType("application/json");
    request.setContentLength64(static_cast<Poco::Int64>(body.size()));
  }
  return request;
}

}  // namespace jobq::cli
