#include "reasons.h"

#include <openssl/x509.h>
#include <strings.h>

#include <cctype>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <system_error>

#include "transfer.h"

namespace jobq::http_client {

namespace {

std::string asClause(std::string text) {
  const bool word = text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0;
  if (word) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

// Returns ": " and the system's reason, or an empty text if the system gave no reason.
std::string systemsReason(CURL* easy) {
  long number = 0;
  curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
  return number == 0 ? std::string() : ": " + reasonOfErrno(static_cast<int>(number));
}

std::string reasonOfConnect(CURL* easy) {
  long number = 0;
  curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &number);
  return number == 0 ? "no connection was established" : reasonOfErrno(static_cast<int>(number));
}

std::string reasonOfTrust(CURL* easy) {
  long verdict = X509_V_OK;
  curl_easy_getinfo(easy, CURLINFO_SSL_VERIFYRESULT, &verdict);
  // The value of libcurl before the check of the chain, made after the check of the name.
  constexpr long kNotVerified = X509_V_ERR_UNSPECIFIED;
  if (verdict == X509_V_OK || verdict == kNotVerified)
    return "the certificate is not trusted: it is for another host name";
  return std::string("the certificate is not trusted: ") + X509_verify_cert_error_string(verdict);
}

// OpenSSL's own words are at the end: "error:0A00010B:SSL routines::wrong version number".
std::string reasonOfHandshake(std::string_view detail) {
  const std::size_t at = detail.rfind("::");
  return "the TLS handshake failed" + (at == detail.npos ? "" : ": " + std::string(detail.substr(at + 2)));
}

/// Returns true if the transfer has come to the step.
bool reached(CURL* easy, CURLINFO step) {
  curl_off_t when = 0;
  curl_easy_getinfo(easy, step, &when);
  return when > 0;
}

/// Returns true if the transfer had a connection. CURLINFO_CONNECT_TIME of libcurl 7.88 would include the handshake.
bool connected(CURL* easy) {
  long port = 0;
  curl_easy_getinfo(easy, CURLINFO_LOCAL_PORT, &port);
  return port > 0;
}

// A kept connection made its handshake for an earlier transfer.
bool isKept(CURL* easy) {
  long opened = 0;
  curl_easy_getinfo(easy, CURLINFO_NUM_CONNECTS, &opened);
  return opened == 0 && connected(easy);
}

bool overTls(CURL* easy) {
  const char* scheme = nullptr;
  curl_easy_getinfo(easy, CURLINFO_SCHEME, &scheme);
  return scheme != nullptr && strcasecmp(scheme, "https") == 0;
}

}  // namespace

std::string reasonOfErrno(int number) {
  // EPIPE is a reset noticed while writing; its text says little to people.
  if (number == EPIPE) number = ECONNRESET;
  return asClause(std::generic_category().message(number));
}

std::string inWords(Millis time) {
  const auto count = time.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + " s" : std::to_string(count) + " ms";
}

bool isAnswered(const FailedTransfer& failed) {
  curl_off_t firstByte = 0;
  curl_easy_getinfo(failed.easy, CURLINFO_STARTTRANSFER_TIME_T, &firstByte);
  return firstByte > 0;
}

std::string reasonOfFault(const FailedTransfer& failed) {
  const std::string peer(failed.peer);
  switch (failed.code) {
    case CURLE_OK: return "the " + peer + " closed the connection within the answer's head";
    case CURLE_COULDNT_RESOLVE_HOST: return "the name does not resolve";
    case CURLE_COULDNT_CONNECT: return reasonOfConnect(failed.easy);
    case CURLE_GOT_NOTHING: return "the " + peer + " closed the connection without an answer";
    case CURLE_PARTIAL_FILE: return "the " + peer + " closed the connection within the answer";
    case CURLE_RECV_ERROR:
      return (failed.isHeadComplete ? "the connection broke before the answer was complete"
                                    : "the connection broke before the answer came") +
             systemsReason(failed.easy);
    case CURLE_SEND_ERROR: return "the connection broke while the call was sent" + systemsReason(failed.easy);
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY: return "the answer is not HTTP";
    case CURLE_PEER_FAILED_VERIFICATION: return reasonOfTrust(failed.easy);
    case CURLE_SSL_CONNECT_ERROR: return reasonOfHandshake(failed.detail);
    case CURLE_OUT_OF_MEMORY:
      // libcurl 7.88 returns the same code for a head line without an end.
      return isAnswered(failed) ? "a line of the answer's head is too long" : "this server is out of memory";
    default: return asClause(curl_easy_strerror(failed.code));
  }
}

std::string reasonOfDelay(const FailedTransfer& failed, Millis timeout) {
  const std::string within = " within " + inWords(timeout);
  if (failed.isHeadComplete) return "the answer did not end" + within;
  if (!reached(failed.easy, CURLINFO_NAMELOOKUP_TIME_T)) return "the name did not resolve" + within;
  if (!connected(failed.easy)) return "no connection" + within;
  if (overTls(failed.easy) && !isKept(failed.easy) && !reached(failed.easy, CURLINFO_APPCONNECT_TIME_T))
    return "the TLS handshake did not end" + within;
  return "no answer" + within;
}

}  // namespace jobq::http_client
