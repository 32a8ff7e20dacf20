// Tests of the transport `http` over TLS: trusted and refused receivers, and receivers that break off.

#include <filesystem>
#include <fstream>
#include <future>

#include "name_server.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"
#include "webhook_fixture.h"
#include "webhook_receiver.h"

namespace jobq::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

void thank(Peer& peer) {
  peer.readRequest();
  peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
}

class WebhookHttpTls : public WebhookHttp {
 protected:
  WebhookHttpTls() { trust(authority_); }

  /// Makes a transport with trust in the system's authorities and in `authority`.
  void trust(const Identity& authority) {
    std::ofstream(folder_ / "ca.pem") << "\xEF\xBB\xBF" << authority.pem();
    transport_ = loadTransport("http", {{"ca", "ca.pem"}}, folder_, true);
  }
  std::string refusalWith(const std::string& content) {
    std::ofstream(folder_ / "ca.pem") << content;
    return refusalOf("ca.pem");
  }
  std::string refusalOf(const std::string& file) {
    return testkit::thrownText<ConfigError>([&] { return loadTransport("http", {{"ca", file}}, folder_, true); });
  }

  const Identity authority_ = certify({"", true});
  const Identity good_ = certify({}, &authority_);
  const testkit::TemporaryFolder folder_;
};

TEST_F(WebhookHttpTls, DeliversToAReceiverWithACertificateOfAnAuthority) {
  std::promise<std::string> heard;
  auto hearing = heard.get_future();
  Receiver server(
      [&](Peer& peer) {
        heard.set_value(peer.readRequest());
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
      },
      good_);
  const Delivered delivered = deliveredTo(server.url("/hook"));
  ASSERT_EQ(delivered.status, 200);
  EXPECT_EQ(delivered.reply, "ok");
  const std::string request = testkit::resultOf("the request that the receiver read", hearing);
  EXPECT_THAT(request, StartsWith("POST /hook HTTP/1.1\r\n"));
  EXPECT_THAT(request, HasSubstr("\r\n\r\n{\"id\":\"a\"}"));
}

TEST_F(WebhookHttpTls, ANameIsCheckedToo) {
  const NameServer names("hook.test", {"127.0.0.1"});
  Receiver named(thank, certify({"DNS:hook.test"}, &authority_));
  EXPECT_EQ(deliveredTo(named.url("/", "hook.test")).status, 200);
  EXPECT_EQ(failureOf(named.url()).reason, "the certificate is not trusted: it is for another host name");
  Receiver other(thank, certify({"DNS:*.other.test,IP:127.0.0.2"}, &authority_));
  EXPECT_EQ(failureOf(other.url("/", "hook.test")).reason,
            "the certificate is not trusted: it is for another host name");
  EXPECT_EQ(failureOf(other.url()).reason, "the certificate is not trusted: it is for another host name");
  Receiver nameless(thank, certify({""}, &authority_));
  EXPECT_EQ(failureOf(nameless.url()).reason, "the certificate is not trusted: it is for another host name");
}

TEST_F(WebhookHttpTls, RefusesServersWithoutAKnownAuthority) {
  Receiver own(thank, certify({}));
  EXPECT_EQ(failureOf(own.url()).reason, "the certificate is not trusted: self-signed certificate");
  const Identity stranger = certify({"", true});
  Receiver strange(thank, certify({}, &stranger));
  EXPECT_EQ(failureOf(strange.url()).reason, "the certificate is not trusted: unable to get local issuer certificate");
  EXPECT_EQ(failureOf(strange.url()).status, 0);
}

TEST_F(WebhookHttpTls, RefusesAReceiverUnknownToTheSystem) {
  transport_ = loadTransport("http", {}, folder_, true);
  Receiver server(thank, good_);
  EXPECT_EQ(failureOf(server.url()).reason, "the certificate is not trusted: unable to get local issuer certificate");
}

TEST_F(WebhookHttpTls, RefusesACertificateOutsideTheValidPeriod) {
  Receiver old(thank, certify({"IP:127.0.0.1", false, -7200, -3600}, &authority_));
  EXPECT_EQ(failureOf(old.url()).reason, "the certificate is not trusted: certificate has expired");
  Receiver early(thank, certify({"IP:127.0.0.1", false, 3600, 7200}, &authority_));
  EXPECT_EQ(failureOf(early.url()).reason, "the certificate is not trusted: certificate is not yet valid");
}

TEST_F(WebhookHttpTls, ASelfSignedCertificateMayBeTrusted) {
  const Identity own = certify({});
  trust(own);
  Receiver server(thank, own);
  EXPECT_EQ(deliveredTo(server.url()).status, 200);
}

TEST_F(WebhookHttpTls, SpeaksTls12AtLeast) {
  Receiver modest(thank, good_, TLS1_2_VERSION);
  EXPECT_EQ(deliveredTo(modest.url()).status, 200);
  Receiver old(thank, good_, TLS1_1_VERSION);
  EXPECT_THAT(failureOf(old.url()).reason, StartsWith("the TLS handshake failed"));
}

TEST_F(WebhookHttpTls, AReceiverWithoutTlsIsAFailure) {
  Receiver plain([](Peer& peer) {
    peer.receive();
    peer.send("HTTP/1.1 400 Speak plainly\r\n\r\n");
  });
  EXPECT_EQ(failureOf("https://127.0.0.1:" + std::to_string(plain.port())).reason,
            "the TLS handshake failed: wrong version number");
  Receiver gone([](Peer& peer) { peer.receive(); });
  EXPECT_THAT(failureOf("https://127.0.0.1:" + std::to_string(gone.port())).reason,
              StartsWith("the TLS handshake failed"));
  Receiver secure(thank, good_);
  EXPECT_EQ(failureOf("http://127.0.0.1:" + std::to_string(secure.port())).status, 0);
}

TEST_F(WebhookHttpTls, AnEndlessHandshakeIsLate) {
  Receiver silent([](Peer& peer) { peer.hold(); });
  const testkit::PaceWatch watch;
  // Three seconds, so the connection is there before the timeout on a busy machine too.
  EXPECT_EQ(failureOf("https://127.0.0.1:" + std::to_string(silent.port()), Millis(3'000)).reason,
            "the TLS handshake did not end within 3 s");
  watch.end("a handshake that does not end", Millis(4'000));
}

TEST_F(WebhookHttpTls, AConnectionBrokenWithinTheBodyHasAnswered) {
  for (const bool reset : {false, true}) {
    Receiver broken(
        [reset](Peer& peer) {
          peer.readRequest();
          peer.send("HTTP/1.1 200 OK\r\n\r\nabc");
          if (!reset) return;
          peer.awaitRead();
          peer.reset();
        },
        good_);
    EXPECT_EQ(deliveredTo(broken.url()).status, 200);
  }
}

TEST_F(WebhookHttpTls, AnEndWhileALargeBodyIsSentRaisesNoSignal) {
  signal(SIGPIPE, SIG_DFL);
  Receiver gone(
      [](Peer& peer) {
        peer.receive();
        peer.reset();
      },
      good_);
  WebhookCall call = callTo(gone.url());
  call.body = "\"" + std::string(30'000'000, 'x') + "\"";
  for (int i = 0; i < 10; ++i) {
    const DeliveryResult result = deliver(call);
    ASSERT_TRUE(std::holds_alternative<DeliveryFailed>(result));
    EXPECT_THAT(std::get<DeliveryFailed>(result).reason, StartsWith("the connection broke "));
  }
}

TEST_F(WebhookHttpTls, ConcurrentDeliveriesShareNothing) {
  Receiver server(thank, good_);
  Receiver stranger(thank, certify({}));
  std::vector<std::future<void>> threads;
  for (int thread = 0; thread < 16; ++thread) {
    threads.push_back(std::async(std::launch::async, [&] {
      for (int i = 0; i < 5; ++i) {
        EXPECT_EQ(deliveredTo(server.url()).reply, "ok");
        EXPECT_THAT(failureOf(stranger.url()).reason, StartsWith("the certificate is not trusted"));
      }
    }));
  }
  for (auto& thread : threads) testkit::resultOf("a thread of deliveries", thread);
}

TEST_F(WebhookHttpTls, AFileOfAuthoritiesMustHoldCertificates) {
  EXPECT_EQ(refusalOf("missing.pem"), "webhook.http.ca: " + (folder_ / "missing.pem").string() +
                                          " cannot be read; name a PEM file of certificates");
  EXPECT_THAT(refusalOf(folder_.path().string()), HasSubstr("cannot be read"));
  EXPECT_THAT(refusalWith(""), HasSubstr("cannot be read"));
  EXPECT_THAT(refusalWith("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
              HasSubstr("holds no certificate"));
  EXPECT_THAT(refusalWith("a"), HasSubstr("holds no certificate"));
}

}  // namespace
}  // namespace jobq::test
