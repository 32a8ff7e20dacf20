#include <Poco/Exception.h>
#include <Poco/Net/Context.h>
#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>

#include <algorithm>
#include <climits>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "core/http/transport/byte_stream.h"
#include "jobq/byte_order_mark.h"
#include "jobq/error.h"

namespace jobq {
namespace {

/// Ciphers of TLS 1.2 with forward secrecy and without CBC. All ciphers of TLS 1.3 are of this kind.
constexpr const char* kCiphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

// TLS over OpenSSL directly, because Poco's secure socket waits inside its handshake.
class TlsStream final : public ByteStream {
 public:
  TlsStream(int descriptor, SSL_CTX* context) : ByteStream(descriptor), ssl_(SSL_new(context)) {
    if (ssl_ == nullptr) throw Error("OpenSSL has no memory for another connection");
    ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    SSL_set_fd(ssl_, descriptor);
    SSL_set_accept_state(ssl_);
  }
  ~TlsStream() override { SSL_free(ssl_); }

  std::optional<std::size_t> read(char* to, std::size_t size, Wait wait) override {
    const auto end = std::chrono::steady_clock::now() + kLinger;
    for (;;) {
      ERR_clear_error();
      const int got = SSL_read(ssl_, to, static_cast<int>(std::min<std::size_t>(size, INT_MAX)));
      if (got > 0) return static_cast<std::size_t>(got);
      const short wanted = wants(got);
      if (wanted == 0) return 0;
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      if (wait == Wait::no || left.count() <= 0) return std::nullopt;
      await(wanted, left);
    }
  }

  std::optional<std::size_t> writeSome(std::string_view first, std::string_view second) override {
    // A small answer is one record; a large body is not copied.
    if (!first.empty() && second.size() <= kTogether) {
      std::string whole(first);
      whole += second;
      return writeOne(whole);
    }
    const auto ofFirst = writeOne(first);
    if (!ofFirst || *ofFirst < first.size()) return ofFirst;
    const auto ofSecond = writeOne(second);
    if (!ofSecond) return std::nullopt;
    return *ofFirst + *ofSecond;
  }

  void endSending() noexcept override {
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_) == 1) SSL_shutdown(ssl_);
    ByteStream::endSending();
  }

  bool handshaking() const noexcept override { return SSL_is_init_finished(ssl_) == 0; }

  bool secure() const noexcept override { return true; }

 private:
  static constexpr std::size_t kTogether = 16384;

  // Returns the poll() event needed before the call can continue, or 0 if the call has failed for good.
  short wants(int result) const noexcept {
    switch (SSL_get_error(ssl_, result)) {
      case SSL_ERROR_WANT_READ: return POLLIN;
      case SSL_ERROR_WANT_WRITE: return POLLOUT;
      default: return 0;
    }
  }

  // Without renegotiation a write never waits for input of the peer.
  std::optional<std::size_t> writeOne(std::string_view text) {
    std::size_t moved = 0;
    while (moved < text.size()) {
      ERR_clear_error();
      const std::size_t left = text.size() - moved;
      const int sent = SSL_write(ssl_, text.data() + moved, static_cast<int>(std::min<std::size_t>(left, INT_MAX)));
      if (sent > 0) {
        moved += static_cast<std::size_t>(sent);
        continue;
      }
      if (wants(sent) == 0) return std::nullopt;
      break;
    }
    return moved;
  }

  SSL* ssl_;
};

}  // namespace

struct TlsContext::Poco {
  ::Poco::Net::Context::Ptr context;
};

TlsContext::TlsContext(std::string certificate, std::string key)
    : certificate_(std::move(certificate)), key_(std::move(key)), poco_(load(certificate_, key_)) {}

namespace {

[[noreturn]] void refuseFiles(const std::string& why) {
  ERR_clear_error();
  throw ConfigError("server.tls.certificate and server.tls.key: " + why);
}

using PemSource = std::unique_ptr<BIO, decltype(&BIO_free)>;

// Returns the text of the file without a byte order mark. Throws ConfigError.
std::string pemOf(const std::string& file) {
  constexpr std::size_t kMostBytes = 16 << 20;
  std::error_code ignored;
  std::string text;
  std::ifstream in(file, std::ios::binary);
  if (std::filesystem::is_regular_file(file, ignored) && std::filesystem::file_size(file, ignored) <= kMostBytes) {
    text.assign(std::istreambuf_iterator<char>(in), {});
  }
  if (!in || text.empty()) refuseFiles(file + " cannot be read: name a PEM file that this user may read");
  return std::string(withoutByteOrderMark(text));
}

PemSource sourceOf(const std::string& pem) {
  return {BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free};
}

// The first certificate belongs to the server, and the others to authorities.
void useCertificates(SSL_CTX* context, const std::string& file) {
  const std::string pem = pemOf(file);
  const PemSource source = sourceOf(pem);
  bool isFirst = true;
  while (X509* const each = PEM_read_bio_X509(source.get(), nullptr, nullptr, nullptr)) {
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(each, X509_free);
    const int isUsed = isFirst ? SSL_CTX_use_certificate(context, each) : SSL_CTX_add1_chain_cert(context, each);
    if (isUsed != 1) refuseFiles(file + " has a certificate that OpenSSL does not take: make a new one");
    isFirst = false;
  }
  if (isFirst) refuseFiles(file + " holds no certificate: name a PEM file with BEGIN CERTIFICATE");
  ERR_clear_error();  // the end of the file
}

// OpenSSL asks for the passphrase of an encrypted key here in place of the terminal.
int notePassphrase(char*, int, int, void* isAsked) {
  *static_cast<bool*>(isAsked) = true;
  return -1;
}

void useKey(SSL_CTX* context, const std::string& file) {
  const std::string pem = pemOf(file);
  const PemSource source = sourceOf(pem);
  bool isEncrypted = false;
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(source.get(), nullptr, notePassphrase, &isEncrypted), EVP_PKEY_free);
  if (isEncrypted) {
    refuseFiles(file + " has a passphrase, for which a server cannot ask: remove it with `openssl pkey -in " + file +
                " -out PLAIN`, and protect the file with mode 0600");
  }
  if (!key) refuseFiles(file + " holds no private key: name a PEM file with BEGIN PRIVATE KEY");
  // A key of another kind than the certificate's is refused here; the check of the pair says so.
  if (SSL_CTX_use_PrivateKey(context, key.get()) != 1) ERR_clear_error();
}

}  // namespace

std::shared_ptr<TlsContext::Poco> TlsContext::load(const std::string& certificate, const std::string& key) {
  using ::Poco::Net::Context;
  auto loaded = std::make_shared<Poco>();
  try {
    Context::Params params;
    params.verificationMode = Context::VERIFY_NONE;
    params.cipherList = kCiphers;
    params.loadDefaultCAs = false;
    loaded->context = new Context(Context::TLS_SERVER_USE, params);
    loaded->context->requireMinimumProtocol(Context::PROTO_TLSV1_2);
  } catch (const ::Poco::Exception& error) {
    refuseFiles(error.displayText());
  }
  SSL_CTX* context = loaded->context->sslContext();
  useCertificates(context, certificate);
  useKey(context, key);
  // OpenSSL drops a key that does not belong to the certificate without an error; each handshake would fail then.
  if (SSL_CTX_check_private_key(context) != 1) {
    refuseFiles("the key does not belong to the certificate; set the pair that was made together");
  }
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
  return loaded;
}

void TlsContext::reload() {
  auto fresh = load(certificate_, key_);
  Lock lock(mutex_);
  poco_.swap(fresh);
}

TlsContext::~TlsContext() = default;

// A blocking write sends all bytes, and a blocking read returns with bytes.
::Poco::AutoPtr<::Poco::Net::Context> TlsContext::blockingContext() {
  Lock lock(mutex_);
  SSL_CTX_clear_mode(poco_->context->sslContext(), SSL_MODE_ENABLE_PARTIAL_WRITE);
  SSL_CTX_set_mode(poco_->context->sslContext(), SSL_MODE_AUTO_RETRY);
  return poco_->context;
}

std::unique_ptr<ByteStream> TlsContext::stream(int descriptor) const {
  std::shared_ptr<Poco> current;
  {
    Lock lock(mutex_);
    current = poco_;
  }
  // The stream holds a reference of its own to the context.
  return std::make_unique<TlsStream>(descriptor, current->context->sslContext());
}

}  // namespace jobq
