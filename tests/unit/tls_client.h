// A TLS connection without a network: a ByteStream at the server's end, and OpenSSL over memory at the client's end, so
// a test decides which bytes reach the server, and when.
#pragma once

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "core/http/transport/budget.h"
#include "core/http/transport/byte_stream.h"
#include "testkit/temporary_folder.h"
#include "tests/plugins/webhook_certificates.h"

namespace jobq::test {

inline constexpr std::size_t kAll = ~std::size_t{0};

/// The client's end of a connection. Bytes of the client wait inside the object until transfer(). One thread.
class TlsClient {
 public:
  explicit TlsClient(int newestVersion = TLS1_3_VERSION) : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
      throw std::system_error(errno, std::generic_category(), "socketpair");
    }
    client_ = ends[0];
    server_ = ends[1];
    SSL_CTX_set_security_level(context_.get(), 0);
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context_.get(), newestVersion);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_connect_state(ssl_.get());
  }
  ~TlsClient() { hangUp(); }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  /// Returns the server's end, which belongs to the caller from then on.
  int server() const { return server_; }
  SSL* ssl() const { return ssl_.get(); }

  /// Continues the handshake with the bytes received so far. Returns true when the handshake is finished here.
  bool shakeHands() { return SSL_do_handshake(ssl_.get()) == 1; }

  /// Encrypts the text into one record, which waits inside the object.
  void encrypt(std::string_view text) {
    ASSERT_EQ(SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())), static_cast<int>(text.size()));
  }
  /// Makes a close_notify, which waits inside the object.
  void makeCloseNotify() { SSL_shutdown(ssl_.get()); }

  std::size_t waiting() const { return BIO_ctrl_pending(SSL_get_wbio(ssl_.get())); }
  /// Takes the waiting bytes, for the test to change.
  std::string readWaiting() {
    std::string bytes(waiting(), '\0');
    BIO_read(SSL_get_wbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    return bytes;
  }
  void sendRaw(std::string_view bytes) const {
    ASSERT_EQ(::send(client_, bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  /// Sends the first `most` of the waiting bytes to the server.
  void transfer(std::size_t most = kAll) {
    std::string bytes(std::min(most, waiting()), '\0');
    if (bytes.empty()) return;
    BIO_read(SSL_get_wbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    sendRaw(bytes);
  }

  /// Reads the bytes sent by the server so far, at most `most`, unchanged from the wire.
  std::string readRaw(std::size_t most = kAll) {
    std::string text;
    std::array<char, 65'536> bytes{};
    while (text.size() < most) {
      const ssize_t got = ::recv(client_, bytes.data(), std::min(most - text.size(), bytes.size()), MSG_DONTWAIT);
      if (got == 0) ended_ = true;
      if (got <= 0) break;
      text.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  /// Gives the bytes of the server to OpenSSL.
  void collect() {
    const std::string raw = readRaw();
    if (!raw.empty()) BIO_write(SSL_get_rbio(ssl_.get()), raw.data(), static_cast<int>(raw.size()));
  }
  /// Returns the text sent by the server so far; a read returns the text of a single record at most.
  std::string received() {
    collect();
    std::string text;
    std::array<char, 65'536> bytes{};
    for (;;) {
      const int got = SSL_read(ssl_.get(), bytes.data(), static_cast<int>(bytes.size()));
      if (got <= 0) return text;
      ++records_;
      text.append(bytes.data(), static_cast<std::size_t>(got));
    }
  }
  int records() const { return records_; }
  bool sawEnd() const { return ended_; }
  bool sawCloseNotify() const { return (SSL_get_shutdown(ssl_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }

  void endSending() const { ::shutdown(client_, SHUT_WR); }
  void hangUp() {
    if (client_ >= 0) ::close(client_);
    client_ = -1;
  }

  std::string serverName() const {
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl_.get()), X509_free);
    if (certificate == nullptr) return "";
    std::array<char, 100> name{};
    X509_NAME_get_text_by_NID(X509_get_subject_name(certificate.get()), NID_commonName, name.data(), name.size());
    return name.data();
  }

 private:
  int client_ = -1;
  int server_ = -1;
  bool ended_ = false;
  int records_ = 0;
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{nullptr, SSL_free};
};

/// A base of test fixtures: a certificate with its key in files, and streams of clients.
class TlsFixture {
 protected:
  TlsFixture() { writeIdentity(); }

  /// Writes another certificate and a key, and returns the name in the certificate.
  std::string writeIdentity() {
    const Identity identity = certify({});
    std::ofstream(certificate()) << identity.pem();
    const std::unique_ptr<BIO, decltype(&BIO_free)> sink(BIO_new_file(key().c_str(), "w"), BIO_free);
    PEM_write_bio_PrivateKey(sink.get(), identity.key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::array<char, 100> name{};
    X509_NAME_get_text_by_NID(X509_get_subject_name(identity.certificate.get()), NID_commonName, name.data(),
                              name.size());
    return name.data();
  }
  std::string certificate() const { return (folder_ / "cert.pem").string(); }
  std::string key() const { return (folder_ / "key.pem").string(); }

  std::optional<std::size_t> read(ByteStream& stream, ByteStream::Wait wait = ByteStream::Wait::no,
                                  std::size_t size = kAll) {
    return stream.read(bytes_.data(), std::min(size, bytes_.size()), wait);
  }
  /// Reads until no byte is left, and returns the text.
  std::string readAll(ByteStream& stream) {
    std::string text;
    while (const auto got = read(stream)) {
      if (*got == 0) break;
      text.append(bytes_.data(), *got);
    }
    return text;
  }

  /// Completes the handshake of both ends.
  void shakeHands(TlsClient& client, ByteStream& stream) {
    for (int round = 0; round < 4 && (stream.handshaking() || !client.shakeHands()); ++round) {
      client.shakeHands();
      client.transfer();
      ASSERT_EQ(read(stream), std::nullopt);
      client.collect();
    }
    ASSERT_FALSE(stream.handshaking());
    ASSERT_EQ(client.received(), "") << "the tickets of the session carry no text";
  }
  /// Returns the stream of a client whose handshake is complete.
  std::unique_ptr<ByteStream> connected(TlsClient& client, const TlsContext& context) {
    auto stream = context.stream(client.server());
    shakeHands(client, *stream);
    return stream;
  }

  const testkit::TemporaryFolder folder_;
  Budget places_{8};
  std::array<char, 65'536> bytes_{};
};

}  // namespace jobq::test
