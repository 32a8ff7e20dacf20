// Tests of TLS handshakes and of the files of the certificate (core/http/transport/tls_stream.cpp).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>

#include "core/http/transport/byte_stream.h"
#include "jobq/error.h"
#include "testkit/thrown_text.h"
#include "tls_client.h"

namespace jobq {
namespace {

using test::TlsClient;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class TlsContextTest : public testing::Test, protected test::TlsFixture {};

TEST_F(TlsContextTest, TheHandshakeTakesPlaceInsideRead) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = context.stream(client.server());
  EXPECT_TRUE(stream->secure());
  EXPECT_TRUE(stream->handshaking());
  EXPECT_EQ(read(*stream), std::nullopt) << "the client has sent no byte";
  EXPECT_FALSE(client.shakeHands());
  client.transfer();
  EXPECT_EQ(read(*stream), std::nullopt) << "the server has answered and waits for the end of the handshake";
  EXPECT_TRUE(stream->handshaking());
  client.collect();
  EXPECT_TRUE(client.shakeHands());
  client.encrypt("first");
  client.transfer();
  ASSERT_EQ(read(*stream), 5U) << "the end of the handshake and the first text came together";
  EXPECT_EQ(std::string(bytes_.data(), 5), "first");
  EXPECT_FALSE(stream->handshaking());
  EXPECT_TRUE(stream->secure());
  EXPECT_EQ(SSL_version(client.ssl()), TLS1_3_VERSION);
}

TEST_F(TlsContextTest, AHandshakeArrivingByteByByteIsNotAnEnd) {
  const TlsContext context(certificate(), key());
  for (const int version : {TLS1_3_VERSION, TLS1_2_VERSION}) {
    TlsClient client(version);
    const auto stream = context.stream(client.server());
    for (int round = 0; round < 4 && stream->handshaking(); ++round) {
      client.shakeHands();
      while (client.waiting() > 0) {
        client.transfer(1);
        ASSERT_EQ(read(*stream), std::nullopt);
      }
      client.collect();
    }
    EXPECT_FALSE(stream->handshaking()) << version;
    EXPECT_TRUE(client.shakeHands()) << version;
    EXPECT_EQ(SSL_version(client.ssl()), version);
  }
}

TEST_F(TlsContextTest, VersionsBefore12AreRefused) {
  const TlsContext context(certificate(), key());
  TlsClient client(TLS1_1_VERSION);
  const auto stream = context.stream(client.server());
  client.shakeHands();
  client.transfer();
  EXPECT_EQ(read(*stream), 0U);
  EXPECT_TRUE(stream->handshaking());
  client.collect();
  EXPECT_FALSE(client.shakeHands());
  EXPECT_EQ(SSL_get_state(client.ssl()), TLS_ST_CW_CLNT_HELLO) << "the server has agreed to no version";
}

TEST_F(TlsContextTest, AHandshakeGoesOnWhenTheSocketWasFull) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = context.stream(client.server());
  std::size_t junk = 0;
  for (std::size_t piece = 4'096; piece > 0;) {
    const ssize_t sent = ::send(stream->descriptor(), bytes_.data(), piece, MSG_DONTWAIT);
    if (sent > 0) junk += static_cast<std::size_t>(sent);
    if (sent <= 0) piece /= 2;
  }
  ASSERT_GT(junk, 0U);
  client.shakeHands();
  client.transfer();
  EXPECT_EQ(read(*stream), std::nullopt) << "the answer of the handshake has no room";
  EXPECT_EQ(read(*stream, ByteStream::Wait::linger), std::nullopt);
  EXPECT_EQ(client.readRaw(junk).size(), junk);
  EXPECT_EQ(read(*stream), std::nullopt) << "the answer has left";
  client.collect();
  ASSERT_TRUE(client.shakeHands());
  client.encrypt("text");
  client.transfer();
  EXPECT_EQ(readAll(*stream), "text");
}

TEST_F(TlsContextTest, ACloseInsideTheHandshakeIsTheEnd) {
  const TlsContext context(certificate(), key());
  TlsClient client;
  const auto stream = context.stream(client.server());
  client.shakeHands();
  client.transfer(20);
  EXPECT_EQ(read(*stream), std::nullopt);
  client.hangUp();
  EXPECT_EQ(read(*stream), 0U);
  EXPECT_TRUE(stream->handshaking());
}

TEST_F(TlsContextTest, OtherBytesThanAHandshakeEndTheConnection) {
  const TlsContext context(certificate(), key());
  for (const std::string& wrong : {std::string("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), std::string(300, '\0'),
                                   std::string(300, '\xff'), std::string("\x16\x03\x01\x00\x04\xff\x00\x00\x00", 9)}) {
    TlsClient client;
    const auto stream = context.stream(client.server());
    client.sendRaw(wrong);
    EXPECT_EQ(read(*stream), 0U) << wrong;
    EXPECT_EQ(read(*stream, ByteStream::Wait::linger), 0U) << wrong;
    EXPECT_TRUE(stream->handshaking()) << wrong;
    EXPECT_FALSE(stream->write("head", "body", TransferDeadline(places_))) << wrong;
    stream->endSending();
    EXPECT_THAT(client.readRaw(), Not(HasSubstr("body"))) << wrong;
    EXPECT_TRUE(client.sawEnd()) << wrong;
  }
}

TEST_F(TlsContextTest, AStreamOutlivesTheContextAndClosesTheDescriptor) {
  TlsClient client;
  std::optional<TlsContext> context(std::in_place, certificate(), key());
  auto stream = connected(client, *context);
  context.reset();
  EXPECT_TRUE(stream->write("still", " here", TransferDeadline(places_)));
  EXPECT_EQ(client.received(), "still here");
  const int descriptor = stream->descriptor();
  EXPECT_EQ(descriptor, client.server());
  stream.reset();
  EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
  EXPECT_EQ(client.received(), "");
  EXPECT_TRUE(client.sawEnd());
}

/// Returns the sentence of the ConfigError, or an empty string without one.
template <class Act>
std::string configError(Act&& act) {
  return testkit::thrownText<ConfigError>(act);
}

TEST_F(TlsContextTest, AReloadServesLaterConnections) {
  const std::string first = writeIdentity();
  TlsContext context(certificate(), key());
  TlsClient early;
  const auto before = connected(early, context);
  const std::string second = writeIdentity();
  ASSERT_NE(first, second);
  TlsClient between;
  const auto unread = connected(between, context);
  EXPECT_EQ(between.serverName(), first) << "new files need a reload";
  context.reload();
  TlsClient late;
  const auto after = connected(late, context);
  EXPECT_EQ(early.serverName(), first);
  EXPECT_EQ(late.serverName(), second);
  EXPECT_TRUE(before->write("old", "", TransferDeadline(places_)));
  EXPECT_EQ(early.received(), "old") << "a connection survives the reload";
}

TEST_F(TlsContextTest, WrongFilesAreRefusedAndTheFormerFilesStayInUse) {
  const std::string name = writeIdentity();
  TlsContext context(certificate(), key());
  std::filesystem::rename(key(), folder_ / "kept.pem");
  const std::string words = "server.tls.certificate and server.tls.key: ";
  EXPECT_THAT(configError([&] { context.reload(); }), StartsWith(words)) << "the key is missing";
  std::ofstream(key()) << "no key";
  EXPECT_THAT(configError([&] { context.reload(); }), StartsWith(words));
  EXPECT_THAT(configError([&] { TlsContext(certificate(), key()); }), StartsWith(words));
  std::filesystem::remove(certificate());
  std::filesystem::rename(folder_ / "kept.pem", key());
  EXPECT_THAT(configError([&] { context.reload(); }), StartsWith(words)) << "the certificate is missing";
  std::ofstream(certificate()) << test::certify({}).pem();
  EXPECT_EQ(configError([&] { context.reload(); }),
            words + "the key does not belong to the certificate; set the pair that was made together");
  TlsClient client;
  const auto stream = connected(client, context);
  EXPECT_EQ(client.serverName(), name);
}

TEST_F(TlsContextTest, AKeyWithAPassphraseIsRefusedWithAReason) {
  std::string pem;
  {
    const test::Identity identity = test::certify({});
    std::ofstream(certificate()) << identity.pem();
    const std::unique_ptr<BIO, decltype(&BIO_free)> sink(BIO_new(BIO_s_mem()), BIO_free);
    char passphrase[] = "secret";
    ASSERT_EQ(PEM_write_bio_PKCS8PrivateKey(sink.get(), identity.key.get(), EVP_aes_128_cbc(), passphrase, 6, nullptr,
                                            nullptr),
              1);
    char* bytes = nullptr;
    const long length = BIO_get_mem_data(sink.get(), &bytes);
    pem.assign(bytes, static_cast<std::size_t>(length));
  }
  std::ofstream(key()) << pem;
  EXPECT_EQ(configError([&] { TlsContext(certificate(), key()); }),
            "server.tls.certificate and server.tls.key: " + key() +
                " has a passphrase, for which a server cannot ask: remove it with `openssl pkey -in " + key() +
                " -out PLAIN`, and protect the file with mode 0600");
}

TEST_F(TlsContextTest, AFileMayHaveAByteOrderMarkAndAWrongFileIsNamed) {
  const auto read = [](const std::string& file) {
    std::ifstream in(file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  for (const std::string& file : {certificate(), key()}) {
    const std::string text = read(file);
    std::ofstream(file) << "\xEF\xBB\xBF" << text;
  }
  const TlsContext context(certificate(), key());
  TlsClient client;
  EXPECT_TRUE(connected(client, context)->secure());
  EXPECT_THAT(configError([&] { TlsContext(key(), key()); }), HasSubstr(key() + " holds no certificate"));
  EXPECT_THAT(configError([&] { TlsContext(certificate(), certificate()); }),
              HasSubstr(certificate() + " holds no private key"));
  EXPECT_THAT(configError([&] { TlsContext(certificate(), folder_.path().string()); }), HasSubstr("cannot be read"));
}

}  // namespace
}  // namespace jobq
