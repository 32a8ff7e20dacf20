#include "stdlib/http_exchange.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <new>
#include <system_error>

#include "jobq/net_guard.h"

namespace jobq::lua {
namespace {

constexpr int kLookMs = 50;

template <std::size_t kBytes>
std::string refusalOf(int family, const void* bytes, bool allowPrivate) {
  std::array<std::uint8_t, kBytes> address{};
  std::memcpy(address.data(), bytes, kBytes);
  const net::AddressClass reach = net::classifyAddress(address);
  if (net::isAllowed(reach, allowPrivate)) return {};
  char shown[INET6_ADDRSTRLEN] = "";
  inet_ntop(family, bytes, shown, sizeof shown);
  return std::string("the address ") + shown +
         (reach == net::AddressClass::forbidden ? " is link-local, multicast or reserved, which is never allowed"
                                                : " is private, which is allowed only with net.allowPrivate = true");
}

// Every spelling of an address in a URL, such as a name, 0x7f.1 or ::ffff:127.0.0.1, arrives here as bytes.
std::string refusalOf(const curl_sockaddr& address, bool allowPrivate) {
  const void* const bytes = &address.addr;
  if (address.family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, bytes, sizeof v4);
    return refusalOf<4>(AF_INET, &v4.sin_addr, allowPrivate);
  }
  if (address.family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, bytes, sizeof v6);
    return refusalOf<16>(AF_INET6, &v6.sin6_addr, allowPrivate);
  }
  return "the address is neither IPv4 nor IPv6";
}

std::string inWords(Millis time) {
  const auto count = time.count();
  return count % 1000 == 0 ? std::to_string(count / 1000) + " s" : std::to_string(count) + " ms";
}

// Spells a message such as "Connection refused" as the end of a sentence.
std::string asClause(std::string text) {
  const bool isWord = text.size() > 1 && std::islower(static_cast<unsigned char>(text[1])) != 0;
  if (isWord) text[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(text[0])));
  return text;
}

bool gives(const HttpRequest& request, const char* name) {
  return std::any_of(request.headers.begin(), request.headers.end(),
                     [name](const auto& header) { return strcasecmp(header.first.c_str(), name) == 0; });
}

}  // namespace

HttpExchange::HttpExchange(const HttpRequest& request, const HttpUrl& url, IncomingAnswer& answer)
    : request_(request), url_(url), answer_(answer), multi_(curl_multi_init()), easy_(curl_easy_init()) {
  if (easy_ == nullptr || multi_ == nullptr) throw std::bad_alloc();
}

// Uses the multi interface, because only its wait can be interrupted.
std::optional<HttpOutcome> HttpExchange::run(std::chrono::steady_clock::time_point end,
                                             const std::function<bool()>& isOver) {
  setUpConnection(end);
  setUpTrust();
  setUpRequest();
  setUpAnswer();
  curl_multi_add_handle(multi_.get(), easy_.get());
  for (;;) {
    int running = 0;
    if (curl_multi_perform(multi_.get(), &running) != CURLM_OK) throw std::bad_alloc();
    if (running == 0) break;
    if (isOver()) return HttpGivenUp{};
    curl_multi_poll(multi_.get(), nullptr, 0, kLookMs, nullptr);
  }
  int left = 0;
  const CURLMsg* message = curl_multi_info_read(multi_.get(), &left);
  const CURLcode code = message == nullptr ? CURLE_FAILED_INIT : message->data.result;
  if (outOfMemory_) throw std::bad_alloc();
  if (!answer_.location().empty() || (code == CURLE_OK && answer_.isHeadComplete())) return std::nullopt;
  return HttpFault{reasonOf(code)};
}

void HttpExchange::setUpConnection(std::chrono::steady_clock::time_point end) {
  const auto left = std::chrono::ceil<Millis>(end - std::chrono::steady_clock::now());
  set(CURLOPT_CURLU, url_.handle());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_FOLLOWLOCATION, 0L);  // callHttp follows: each address is checked anew, and secrets stay behind
  set(CURLOPT_PROXY, "");           // empty, not unset: the proxy of the environment is not looked up
  set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  set(CURLOPT_FORBID_REUSE, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(left.count(), 1)));
  // A hanging resolver is left to its thread, which cleans up after itself. Otherwise the end of the call would wait
  // for the resolver.
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_OPENSOCKETFUNCTION, openSocket);
  set(CURLOPT_OPENSOCKETDATA, this);
}

// Debian installs its certificates twice, as one file and as a folder. Reading the file takes 25 ms of a handshake,
// finding an authority in the folder no measurable time.
void HttpExchange::setUpTrust() {
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  const char* folder = nullptr;
  curl_easy_getinfo(easy_.get(), CURLINFO_CAPATH, &folder);
  if (folder != nullptr) set(CURLOPT_CAINFO, static_cast<const char*>(nullptr));
}

void HttpExchange::setUpRequest() {
  set(CURLOPT_USERAGENT, "jobq-lua/1");
  addHeader("Connection: close");
  if (request_.body) {
    set(CURLOPT_POST, 1L);
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body->size()));
    set(CURLOPT_POSTFIELDS, request_.body->data());
    addHeader("Expect:");  // removes the header: many servers would delay the answer by a second
    // By default libcurl would send the content type of a form.
    if (!gives(request_, "Content-Type")) addHeader("Content-Type:");
  }
  for (const auto& [name, value] : request_.headers) {
    const bool isBlank = value.find_first_not_of(" \t") == std::string::npos;
    addHeader(name + (isBlank ? ";" : ": " + value));
  }
  set(CURLOPT_HTTPHEADER, headers_.get());
}

void HttpExchange::setUpAnswer() {
  set(CURLOPT_ERRORBUFFER, detail_.data());
  set(CURLOPT_HEADERFUNCTION, takeHeadLine);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, takeBody);
  set(CURLOPT_WRITEDATA, this);
}

void HttpExchange::addHeader(const std::string& line) {
  curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  (void)headers_.release();
  headers_.reset(longer);
}

std::string HttpExchange::reasonOf(CURLcode code) const {
  if (answer_.headTooLarge()) {
    return "the answer's head is larger than " + std::to_string(IncomingAnswer::kMostHead) + " bytes";
  }
  if (answer_.bodyTooLarge()) {
    return "the answer is larger than " + std::to_string(request_.maxBody) + " bytes (lua.httpBody)";
  }
  switch (code) {
    case CURLE_OK: return "the server closed the connection within the answer's head";
    case CURLE_OPERATION_TIMEDOUT: return reasonOfDelay();
    case CURLE_COULDNT_RESOLVE_HOST: return "the name does not resolve";
    case CURLE_COULDNT_CONNECT: return reasonOfConnect();
    case CURLE_GOT_NOTHING: return "the server closed the connection without an answer";
    case CURLE_PARTIAL_FILE: return "the server closed the connection within the answer";
    case CURLE_RECV_ERROR: return "the connection broke before the answer was complete";
    case CURLE_SEND_ERROR: return "the connection broke while the request was sent";
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY: return "the answer is not HTTP";
    case CURLE_PEER_FAILED_VERIFICATION: return std::string("the certificate is not trusted: ") + detail_.data();
    case CURLE_SSL_CONNECT_ERROR: return std::string("the TLS handshake failed: ") + detail_.data();
    // libcurl 7.88 returns CURLE_OUT_OF_MEMORY for an endless line of a head.
    case CURLE_OUT_OF_MEMORY: return "a line of the answer's head is too long, or this server is out of memory";
    default: return asClause(curl_easy_strerror(code));
  }
}

// Names the step at which the call hung.
std::string HttpExchange::reasonOfDelay() const {
  const std::string within = " within " + inWords(request_.timeout);
  curl_off_t resolved = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_NAMELOOKUP_TIME_T, &resolved);
  if (resolved <= 0) return "the name did not resolve" + within;
  // libcurl 7.88 includes the TLS handshake in CURLINFO_CONNECT_TIME.
  long port = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_LOCAL_PORT, &port);
  if (port <= 0) return "no connection" + within;
  return (answer_.isHeadComplete() ? "the answer did not end" : "no answer") + within;
}

// With several addresses the permitted addresses decide about the reason.
std::string HttpExchange::reasonOfConnect() const {
  if (!connecting_ && !refusal_.empty()) return refusal_;
  long number = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_OS_ERRNO, &number);
  if (number == 0) return "no connection was established";
  return asClause(std::generic_category().message(static_cast<int>(number)));
}

// The three callbacks run within C code, which an exception must not cross.
curl_socket_t HttpExchange::openSocket(void* self, curlsocktype, curl_sockaddr* address) noexcept {
  auto& exchange = *static_cast<HttpExchange*>(self);
  try {
    return exchange.openPermitted(*address);
  } catch (...) {
    exchange.outOfMemory_ = true;
    return CURL_SOCKET_BAD;
  }
}

curl_socket_t HttpExchange::openPermitted(const curl_sockaddr& address) {
  std::string refusal = refusalOf(address, request_.allowPrivate);
  if (!refusal.empty()) {
    if (refusal_.empty()) refusal_ = std::move(refusal);
    return CURL_SOCKET_BAD;
  }
  const int opened = ::socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
  if (opened < 0) refusal_ = "no socket can be opened: " + asClause(std::generic_category().message(errno));
  connecting_ = connecting_ || opened >= 0;
  return opened;
}

std::size_t HttpExchange::takeHeadLine(char* bytes, std::size_t, std::size_t count, void* self) noexcept {
  auto& exchange = *static_cast<HttpExchange*>(self);
  try {
    long status = 0;
    curl_easy_getinfo(exchange.easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    return exchange.answer_.takeHeadLine({bytes, count}, static_cast<int>(status)) ? count : 0;
  } catch (...) {
    exchange.outOfMemory_ = true;
    return 0;
  }
}

std::size_t HttpExchange::takeBody(char* bytes, std::size_t, std::size_t count, void* self) noexcept {
  auto& exchange = *static_cast<HttpExchange*>(self);
  try {
    return exchange.answer_.takeBody({bytes, count}) ? count : 0;
  } catch (...) {
    exchange.outOfMemory_ = true;
    return 0;
  }
}

}  // namespace jobq::lua
