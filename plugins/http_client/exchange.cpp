#include "exchange.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "jobq/file_descriptor.h"
#include "jobq/hex.h"
#include "jobq/machine_fault.h"
#include "reasons.h"

namespace jobq::http_client {
namespace {

// Returns true if the folder has certificates under the hashed names looked up by OpenSSL, such as 5ad8a5d6.0. A small
// container may have the bundle alone, a single file.
bool hasHashedCertificates(const char* folder) {
  std::error_code absent;
  for (std::filesystem::directory_iterator each(folder, absent), end; !absent && each != end; each.increment(absent)) {
    if (each->path().extension() == ".0") return true;
  }
  return false;
}

std::string hostOfRedirect(const WebUrl& url, const std::string& location) {
  constexpr std::size_t kLongestName = 255;
  const std::optional<WebUrl> target = location.empty() ? std::nullopt : url.follow(location);
  const std::string host = target ? target->host() : std::string();
  return host.size() > kLongestName ? std::string() : host;
}

// Returns the error of the system if no thread can be started, and 0 otherwise: a name is resolved on a separate
// thread.
int lackOfThreads() {
  try {
    std::thread([] {}).join();
    return 0;
  } catch (const std::system_error& error) {
    return error.code().value();
  }
}

// Returns the error of the system if fewer descriptors are free than a transfer needs at once: a pair for the
// resolver's thread, a socket, and a file of the authorities. Returns 0 otherwise. The transfer has closed its
// descriptors before the call.
int lackOfDescriptors() {
  std::array<FileDescriptor, 4> opened;
  for (FileDescriptor& each : opened) {
    each = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!each.isOpen()) return errno;
  }
  return 0;
}

// Returns the lack of this machine that may have led to libcurl's code, or 0. Without descriptors a name does not
// resolve, a certificate finds no authority, and the file of the authorities cannot be read.
int lackBehind(CURLcode code) {
  const bool isOfName = code == CURLE_COULDNT_RESOLVE_HOST;
  const bool isOfFiles = code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE;
  int error = isOfName || isOfFiles ? lackOfDescriptors() : 0;
  if (error == 0 && isOfName) error = lackOfThreads();
  return isMachineFault(error) ? error : 0;
}

std::string hexSha256(std::string_view bytes) {
  std::string digest(EVP_MAX_MD_SIZE, '\0');
  unsigned size = 0;
  auto* const out = reinterpret_cast<unsigned char*>(digest.data());
  if (EVP_Digest(bytes.data(), bytes.size(), out, &size, EVP_sha256(), nullptr) != 1) throw std::bad_alloc();
  return toHex({digest.data(), size});
}

}  // namespace

// Every plugin with an HTTP client initialises libcurl; the initialisation is thread-safe since 7.84.
std::optional<Fault> startLibcurl() {
  static const CURLcode kStarted = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (kStarted == CURLE_OK) return std::nullopt;
  return Fault{FaultKind::other, std::string("libcurl does not start: ") + curl_easy_strerror(kStarted)};
}

std::variant<WebUrl, Fault> urlOf(const Request& request) {
  std::optional<WebUrl> url = WebUrl::read(request.url);
  if (!url) return Fault{FaultKind::badUrl, std::string("the URL is not ") + kUrlExpected};
  if (std::optional<Fault> fault = startLibcurl()) return std::move(*fault);
  const bool areHeadersGood = std::all_of(request.headers.begin(), request.headers.end(), [](const auto& header) {
    return isHeaderName(header.first) && isHeaderValue(header.second);
  });
  if (!areHeadersGood) return Fault{FaultKind::badHeader, "a header of the call has characters that HTTP forbids"};
  return std::move(*url);
}

Outcome outcomeOf(const WebUrl& url, IncomingAnswer& answer, std::optional<Fault> fault) {
  return {std::move(answer.answer()), hostOfRedirect(url, answer.location()), std::move(fault)};
}

Exchange::Exchange(const Request& request, const WebUrl& url, IncomingAnswer& answer, Connections connections)
    : request_(request), url_(url), answer_(answer), connections_(connections), easy_(curl_easy_init()) {
  if (easy_ == nullptr) throw std::bad_alloc();
}

void Exchange::setUp(std::chrono::steady_clock::time_point end) {
  setUpConnection(end);
  setUpTrust();
  setUpRequest();
  setUpAnswer();
}

std::optional<Fault> Exchange::faultOf(CURLcode code) const {
  const bool succeeded = answer_.hasEnough() || (code == CURLE_OK && answer_.isHeadComplete());
  if (succeeded && !outOfMemory_) return std::nullopt;
  return fault(code);
}

void Exchange::setUpConnection(std::chrono::steady_clock::time_point end) {
  const auto left = std::chrono::ceil<Millis>(end - std::chrono::steady_clock::now());
  set(CURLOPT_CURLU, url_.handle());
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  // Exchanges share no connection at the same time, so version 1.1 is enough, and every server speaks 1.1.
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  // transfer() follows redirects: each address is checked anew, and secrets stay at their origin.
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_PROXY, "");  // empty, not unset: libcurl then ignores the environment's proxy
  set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  if (connections_ == Connections::kept) {
    // Each new connection asks for the name again, and no connection is used for longer than the name may be trusted.
    set(CURLOPT_DNS_CACHE_TIMEOUT, 0L);
    set(CURLOPT_MAXAGE_CONN, kMostIdleSeconds);
    set(CURLOPT_MAXLIFETIME_CONN, kMostSecondsOfConnection);
  } else {
    set(CURLOPT_FORBID_REUSE, 1L);
  }
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_TIMEOUT_MS, static_cast<long>(std::max<std::int64_t>(left.count(), 1)));
  // A hanging resolver is left to its thread, which cleans up later; the end of the transfer would wait for the
  // resolver otherwise.
  set(CURLOPT_QUICK_EXIT, 1L);
  set(CURLOPT_OPENSOCKETFUNCTION, openSocket);
  set(CURLOPT_OPENSOCKETDATA, this);
}

// Debian has the system's authorities as a single file and as a folder. Reading the file takes 21 ms of a handshake,
// the search in the folder no measurable time. Without a folder libcurl keeps the certificates read from the file, for
// all exchanges of a loop.
CURLoption needlessAuthorities(const char* folder) {
  return folder != nullptr && hasHashedCertificates(folder) ? CURLOPT_CAINFO : CURLOPT_CAPATH;
}

void Exchange::setUpTrust() {
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  const char* folder = nullptr;
  const char* file = nullptr;
  curl_easy_getinfo(easy_.get(), CURLINFO_CAPATH, &folder);
  curl_easy_getinfo(easy_.get(), CURLINFO_CAINFO, &file);
  static const CURLoption kNeedless = needlessAuthorities(folder);
  if (kNeedless == CURLOPT_CAINFO || file != nullptr) set(kNeedless, static_cast<const char*>(nullptr));
  if (request_.authorities.empty()) return;
  curl_blob blob{};
  blob.data = const_cast<char*>(request_.authorities.data());
  blob.len = request_.authorities.size();
  blob.flags = CURL_BLOB_NOCOPY;
  set(CURLOPT_CAINFO_BLOB, &blob);
}

void Exchange::setUpRequest() {
  set(CURLOPT_USERAGENT, request_.userAgent.c_str());
  if (request_.method != Method::get) setUpBody();
  if (request_.signature) {
    setUpSignature(*request_.signature);
  } else {
    if (connections_ == Connections::single) addHeader("Connection: close");
    // Removes the header: libcurl would wait up to a second for a `100 Continue` of the server, which may send no such
    // answer. The header stays with a signature: libcurl 7.88 would sign the removed header, and Connection as well.
    addHeader("Expect:");
  }
  for (const auto& [name, value] : request_.headers) {
    // "Name;" is libcurl's form of a header field with an empty value.
    const bool isBlank = value.find_first_not_of(" \t") == std::string::npos;
    addHeader(name + (isBlank ? ";" : ": " + value));
  }
  set(CURLOPT_HTTPHEADER, headers_.get());
}

void Exchange::setUpBody() {
  set(CURLOPT_POST, 1L);
  if (request_.method == Method::put) set(CURLOPT_CUSTOMREQUEST, "PUT");
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request_.body.size()));
  set(CURLOPT_POSTFIELDS, request_.body.empty() ? "" : request_.body.data());
  // By default libcurl would send the content type of a form.
  if (!hasHeader(request_.headers, "Content-Type")) addHeader("Content-Type:");
}

void Exchange::setUpSignature(const AwsSignature& signature) {
  // libcurl 7.88 signs the hash of the body and leaves the header with the hash, required by S3, to the caller.
  addHeader("x-amz-content-sha256: " + hexSha256(request_.body));
  set(CURLOPT_AWS_SIGV4, ("aws:amz:" + std::string(signature.region) + ":s3").c_str());
  set(CURLOPT_USERNAME, std::string(signature.accessId).c_str());
  set(CURLOPT_PASSWORD, std::string(signature.accessSecret).c_str());
}

void Exchange::setUpAnswer() {
  set(CURLOPT_ERRORBUFFER, detail_.data());
  set(CURLOPT_HEADERFUNCTION, addHeadLine);
  set(CURLOPT_HEADERDATA, this);
  set(CURLOPT_WRITEFUNCTION, addBody);
  set(CURLOPT_WRITEDATA, this);
}

void Exchange::addHeader(const std::string& line) {
  curl_slist* longer = curl_slist_append(headers_.get(), line.c_str());
  if (longer == nullptr) throw std::bad_alloc();
  (void)headers_.release();
  headers_.reset(longer);
}

Fault Exchange::fault(CURLcode code) const {
  const FailedTransfer failed{easy_.get(), code, detail_.data(), request_.peer, answer_.isHeadComplete()};
  if (outOfMemory_) return {FaultKind::outOfMemory, "this server is out of memory"};
  if (answer_.headTooLarge()) {
    return {FaultKind::other,
            "the answer's head is larger than " + std::to_string(IncomingAnswer::kMostHead) + " bytes"};
  }
  if (answer_.bodyTooLarge()) {
    return {FaultKind::bodyTooLarge,
            "the answer is larger than " + std::to_string(request_.bodyBounds.kept) + " bytes"};
  }
  if (code == CURLE_OPERATION_TIMEDOUT) return {FaultKind::late, reasonOfDelay(failed, request_.timeout)};
  if (code == CURLE_OUT_OF_MEMORY && !isAnswered(failed)) return {FaultKind::outOfMemory, reasonOfFault(failed)};
  if (code == CURLE_COULDNT_CONNECT) return faultOfConnect(failed);
  const int lack = lackBehind(code);
  if (lack != 0) return {FaultKind::machine, reasonOfErrno(lack), {}, lack};
  return {FaultKind::other, reasonOfFault(failed)};
}

// A host may have several addresses. The reason is a lack of this machine at any address; otherwise the failed
// connection, if a socket was opened for a permitted address; otherwise the refusal.
Fault Exchange::faultOfConnect(const FailedTransfer& failed) const {
  long connectError = 0;
  curl_easy_getinfo(easy_.get(), CURLINFO_OS_ERRNO, &connectError);
  for (const int lack : {socketError_, static_cast<int>(connectError)}) {
    if (!isMachineFault(lack)) continue;
    return {FaultKind::machine, "no connection can be opened: " + reasonOfErrno(lack), {}, lack};
  }
  if (connecting_) return {FaultKind::other, reasonOfFault(failed)};
  if (socketError_ != 0) return {FaultKind::other, "no socket can be opened: " + reasonOfErrno(socketError_)};
  if (refused_) return {FaultKind::addressRefused, reasonOfRefusal(*refused_), refused_};
  return {FaultKind::other, reasonOfFault(failed)};
}

// The three callbacks are called from C code, where exceptions must not pass.
curl_socket_t Exchange::openSocket(void* self, curlsocktype, curl_sockaddr* address) noexcept {
  auto& exchange = *static_cast<Exchange*>(self);
  try {
    return exchange.openAllowed(*address);
  } catch (...) {
    exchange.outOfMemory_ = true;
    return CURL_SOCKET_BAD;
  }
}

curl_socket_t Exchange::openAllowed(const curl_sockaddr& address) {
  sockaddr_storage copy{};
  std::memcpy(&copy, static_cast<const void*>(&address.addr), std::min<std::size_t>(address.addrlen, sizeof copy));
  std::optional<RefusedAddress> refused = refusalOf(copy, request_.allowPrivate);
  if (refused) {
    if (!refused_) refused_ = std::move(refused);
    return CURL_SOCKET_BAD;
  }
  const int opened = ::socket(address.family, address.socktype | SOCK_CLOEXEC, address.protocol);
  if (opened < 0) socketError_ = errno;
  connecting_ = connecting_ || opened >= 0;
  return opened;
}

std::size_t Exchange::addHeadLine(char* bytes, std::size_t, std::size_t count, void* self) noexcept {
  auto& exchange = *static_cast<Exchange*>(self);
  try {
    long status = 0;
    curl_easy_getinfo(exchange.easy_.get(), CURLINFO_RESPONSE_CODE, &status);
    return exchange.answer_.addHeadLine({bytes, count}, static_cast<int>(status)) ? count : 0;
  } catch (...) {
    exchange.outOfMemory_ = true;
    return 0;
  }
}

std::size_t Exchange::addBody(char* bytes, std::size_t, std::size_t count, void* self) noexcept {
  auto& exchange = *static_cast<Exchange*>(self);
  try {
    return exchange.answer_.addBody({bytes, count}) ? count : 0;
  } catch (...) {
    exchange.outOfMemory_ = true;
    return 0;
  }
}

}  // namespace jobq::http_client
