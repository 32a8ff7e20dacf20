#include "core/client/http_session.h"

#include <Poco/Exception.h>
#include <Poco/Net/HTTPClientSession.h>
#include <Poco/Net/HTTPResponse.h>
#include <Poco/Net/HTTPSClientSession.h>
#include <Poco/Net/RejectCertificateHandler.h>
#include <Poco/Net/SSLManager.h>
#include <Poco/Net/SecureStreamSocket.h>
#include <Poco/Net/SocketAddress.h>
#include <Poco/Net/StreamSocket.h>
#include <Poco/Timespan.h>
#include <Poco/URI.h>

#include <algorithm>
#include <filesystem>
#include <utility>
#include <variant>

#include "core/client/exit_code.h"
#include "jobq/json.h"

namespace jobq::cli {
namespace {

using Poco::Net::HTTPResponse;

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
  SecureSession(const std::string& host, std::uint16_t port, const std::string& ca, Millis silence)
      : HTTPSClientSession(host, port, trustedContext(ca)) {
    Poco::Net::StreamSocket plain;
    plain.connect(Poco::Net::SocketAddress(host, port), timespan(kConnectTimeout));
    plain.setReceiveTimeout(timespan(kConnectTimeout));
    auto secure = Poco::Net::SecureStreamSocket::attach(plain, host, trustedContext(ca));
    if (secure.completeHandshake() < 0) throw Poco::TimeoutException("the TLS handshake did not end");
    secure.setReceiveTimeout(timespan(silence));
    secure.setSendTimeout(timespan(kAnswerLimit));
    attachSocket(secure);
  }
};

// An address copied from the settings of an SDK ends with the prefix of an API, and each call brings its own.
std::string withoutMount(std::string url) {
  std::string_view end = url;
  while (end.ends_with('/')) end.remove_suffix(1);
  for (const std::string_view mount : {"/sdk/v2", "/v2", "/v1"}) {
    if (!end.ends_with(mount)) continue;
    end.remove_suffix(mount.size());
    return std::string(end);
  }
  return url;
}

}  // namespace

ServerAddress readServerAddress(const std::string& given, std::string ca) {
  const std::string url = withoutMount(given);
  ServerAddress server;
  server.url = url;
  server.ca = std::move(ca);
  try {
    const Poco::URI address(url);
    server.isSecure = address.getScheme() == "https";
    server.host = address.getHost();
    server.port = address.getPort();
    server.prefix = address.getPath();
    if ((!server.isSecure && address.getScheme() != "http") || server.host.empty()) throw Poco::SyntaxException(url);
  } catch (const Poco::Exception&) {
    throw CommandError(ExitCode::usage, "'" + given + "' is not an address: write it like http://127.0.0.1:8000");
  }
  while (server.prefix.ends_with('/')) server.prefix.pop_back();
  if (server.isSecure && !server.ca.empty() && !std::filesystem::is_regular_file(server.ca)) {
    throw CommandError(ExitCode::usage,
                       "the file of certificate authorities '" + server.ca + "' cannot be read: check --ca or JOBQ_CA");
  }
  return server;
}

void checkKey(std::string_view key) {
  if (!std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c <= '~'; })) {
    throw CommandError(ExitCode::usage, "the key holds blanks or characters that no key has: copy it again");
  }
}

std::unique_ptr<Poco::Net::HTTPClientSession> openSession(const ServerAddress& server, Millis silence) {
  if (server.isSecure) return std::make_unique<SecureSession>(server.host, server.port, server.ca, silence);
  auto session = std::make_unique<Poco::Net::HTTPClientSession>(server.host, server.port);
  session->setTimeout(timespan(kConnectTimeout), timespan(kAnswerLimit), timespan(silence));
  return session;
}

std::string refusalSentence(const HTTPResponse& response, const std::string& body) {
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

void checkWhole(const HTTPResponse& response, std::uint64_t size) {
  if (response.hasContentLength() && static_cast<std::uint64_t>(response.getContentLength64()) != size) {
    throw CommandError(ExitCode::unreachable, "the connection ended in the middle of the server's answer");
  }
}

}  // namespace jobq::cli
