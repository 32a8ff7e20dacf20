#include "core/worker_program/server_connection.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPRequest.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/StreamCopier.h>
#include <Poco/Timespan.h>

#include <istream>
#include <utility>

#include "core/client/exit_code.h"

namespace jobq::worker {
namespace {

using Poco::Net::HTTPRequest;
using Poco::Net::HTTPResponse;

constexpr Millis kLongestRest{60'000};  // the server closes a connection after 75 s without a call

}  // namespace

ServerConnection::ServerConnection(const cli::ServerAddress& server, std::string key, Millis silence, Clock& clock)
    : server_(server), key_(std::move(key)), silence_(silence), clock_(clock) {}

ServerConnection::~ServerConnection() = default;

Answer ServerConnection::get(const std::string& path) { return invocation(HTTPRequest::HTTP_GET, path, ""); }

Answer ServerConnection::post(const std::string& path, const std::string& body) {
  return invocation(HTTPRequest::HTTP_POST, path, body);
}

// A kept connection may have ended at the server during the call. A second try, on a new connection, succeeds then, and
// fails if the server is gone.
Answer ServerConnection::invocation(const std::string& method, const std::string& path, const std::string& body) {
  if (session_ && clock_.now() >= usedAt_ + kLongestRest) session_.reset();
  for (bool isKept = session_ != nullptr;; isKept = false) {
    HTTPRequest request(method, path, HTTPRequest::HTTP_1_1);
    request.setKeepAlive(true);
    request.set("Accept", "application/json");
    if (!key_.empty()) request.set("Authorization", "Bearer " + key_);
    if (method == HTTPRequest::HTTP_POST) {
      request.setContentType("application/json");
      request.setContentLength64(static_cast<Poco::Int64>(body.size()));
    }
    try {
      return exchange(request, body);
    } catch (const Poco::TimeoutException& error) {
      session_.reset();
      throw cli::CommandError(cli::ExitCode::unreachable, "the server is silent: " + error.displayText());
    } catch (const Poco::Exception& error) {
      session_.reset();
      if (isKept) continue;
      throw cli::CommandError(cli::ExitCode::unreachable,
                              "cannot reach the server at " + server_.url + ": " + error.displayText());
    } catch (const cli::CommandError&) {
      session_.reset();
      throw;
    }
  }
}

Answer ServerConnection::exchange(HTTPRequest& request, const std::string& body) {
  if (!session_) {
    session_ = cli::openSession(server_, silence_);
    session_->setKeepAlive(true);
    session_->setKeepAliveTimeout(Poco::Timespan(24 * Poco::Timespan::HOURS));  // the object replaces old connections
  }
  session_->sendRequest(request) << body;
  HTTPResponse response;
  std::istream& stream = session_->receiveResponse(response);
  Answer answer{static_cast<int>(response.getStatus()), {}, {}};
  if (response.getStatus() != HTTPResponse::HTTP_NO_CONTENT) {
    Poco::StreamCopier::copyToString(stream, answer.body, 65'536);
    cli::checkWhole(response, answer.body.size());
  }
  if (!answer.isSuccess()) answer.refusal = cli::refusalSentence(response, answer.body);
  usedAt_ = clock_.now();
  if (!response.getKeepAlive()) session_.reset();
  return answer;
}

}  // namespace jobq::worker
