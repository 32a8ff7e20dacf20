// Tests of the epoll descriptor of the reactor and of the wakeups of its thread (core/http/transport/event_poll.h).
#include "core/http/transport/event_poll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstddef>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "connection_fixture.h"
#include "core/http/transport/connection.h"
#include "jobq/error.h"
#include "socket_pair.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int kHang = 60'000;  // milliseconds

class EventPollTest : public testing::Test, protected test::ConnectionFixture {
 protected:
  EventPollTest() { poll_.start(); }

  std::unique_ptr<Connection> connect(std::uint64_t id, test::SocketPair& client) {
    return std::make_unique<Connection>(id, client.releaseStream(), server_);
  }
  /// Returns the data of the events that are there already.
  std::vector<std::uint64_t> events() {
    std::vector<std::uint64_t> ids;
    for (const epoll_event& event : poll_.wait(0)) ids.push_back(event.data.u64);
    return ids;
  }

  test::FunctionHandlers handlers_{[](ServerRequest&, ServerResponse&) {}};
  const Connection::Server server_ = serverOf(handlers_);
  EventPoll poll_;
};

TEST_F(EventPollTest, AWakeupStaysUntilCleared) {
  EXPECT_THAT(events(), IsEmpty());
  poll_.wake();
  poll_.wake();
  EXPECT_THAT(events(), ElementsAre(EventPoll::kWakeup));
  EXPECT_THAT(events(), ElementsAre(EventPoll::kWakeup)) << "a wait does not consume the wakeup";
  poll_.clearWakeup();
  EXPECT_THAT(events(), IsEmpty()) << "both wakeups are cleared";
  poll_.clearWakeup();
  poll_.wake();
  EXPECT_THAT(events(), ElementsAre(EventPoll::kWakeup));
}

TEST_F(EventPollTest, AWakeupEndsTheWaitOfASecondThread) {
  for (const int limit : {kHang, -1}) {
    auto waiting = std::async(std::launch::async, [this, limit] {
      const auto events = poll_.wait(limit);
      return events.size() == 1 ? events[0].data.u64 : 0;
    });
    poll_.wake();
    EXPECT_EQ(testkit::resultOf("the wait of the other thread", waiting), EventPoll::kWakeup) << limit;
    poll_.clearWakeup();
  }
}

TEST_F(EventPollTest, AnAddedConnectionRequestsNoEvent) {
  test::SocketPair client;
  const auto connection = connect(7, client);
  client.send("text");
  ASSERT_TRUE(poll_.add(*connection));
  EXPECT_THAT(events(), IsEmpty());
  EXPECT_FALSE(poll_.add(*connection)) << "the system refuses a second registration";
}

TEST_F(EventPollTest, AnArmedConnectionHasASingleEvent) {
  test::SocketPair client;
  const auto connection = connect(7, client);
  ASSERT_TRUE(poll_.add(*connection));
  poll_.arm(*connection, EPOLLIN | EPOLLRDHUP);
  EXPECT_THAT(events(), IsEmpty()) << "no byte has come";
  client.send("text");
  const auto found = poll_.wait(kHang);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].data.u64, 7U);
  EXPECT_EQ(found[0].events, static_cast<std::uint32_t>(EPOLLIN));
  EXPECT_THAT(events(), IsEmpty()) << "the bytes are unread, but a single event was requested";
  poll_.arm(*connection, EPOLLIN);
  EXPECT_THAT(events(), ElementsAre(7U));
  poll_.arm(*connection, EPOLLOUT);
  EXPECT_THAT(events(), ElementsAre(7U)) << "the socket has room for bytes";
  poll_.arm(*connection, 0);
  EXPECT_THAT(events(), IsEmpty());
}

TEST_F(EventPollTest, TheEndOfTheClientIsAnEvent) {
  test::SocketPair client;
  const auto connection = connect(7, client);
  ASSERT_TRUE(poll_.add(*connection));
  poll_.arm(*connection, EPOLLRDHUP);
  client.endSending();
  const auto ended = poll_.wait(kHang);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].data.u64, 7U);
  EXPECT_EQ(ended[0].events & EPOLLRDHUP, static_cast<std::uint32_t>(EPOLLRDHUP));
  poll_.arm(*connection, EPOLLIN);
  client.hangUp();
  const auto gone = poll_.wait(kHang);
  ASSERT_EQ(gone.size(), 1U);
  EXPECT_EQ(gone[0].events & EPOLLHUP, static_cast<std::uint32_t>(EPOLLHUP));
}

TEST_F(EventPollTest, AClosedConnectionHasNoEventAndTheDescriptorIsFree) {
  test::SocketPair client;
  auto connection = connect(7, client);
  ASSERT_TRUE(poll_.add(*connection));
  poll_.arm(*connection, EPOLLIN);
  client.send("text");
  connection.reset();
  EXPECT_THAT(events(), IsEmpty());
  test::SocketPair next;
  const auto other = connect(8, next);
  ASSERT_TRUE(poll_.add(*other));
  poll_.arm(*other, EPOLLIN);
  next.send("text");
  EXPECT_THAT(events(), ElementsAre(8U));
}

TEST_F(EventPollTest, AWaitReturns256EventsAndTheNextWaitTheRest) {
  constexpr std::size_t kConnections = 260;
  std::vector<std::unique_ptr<test::SocketPair>> clients;
  std::vector<std::unique_ptr<Connection>> connections;
  for (std::size_t i = 0; i < kConnections; ++i) {
    clients.push_back(std::make_unique<test::SocketPair>());
    connections.push_back(connect(100 + i, *clients.back()));
    ASSERT_TRUE(poll_.add(*connections.back()));
    poll_.arm(*connections.back(), EPOLLIN);
    clients.back()->send("x");
  }
  const auto first = events();
  EXPECT_EQ(first.size(), 256U);
  const auto second = events();
  EXPECT_EQ(second.size(), 4U);
  std::set<std::uint64_t> all(first.begin(), first.end());
  all.insert(second.begin(), second.end());
  EXPECT_EQ(all.size(), kConnections) << "each connection has an event";
  EXPECT_EQ(*all.begin(), 100U);
  EXPECT_EQ(*all.rbegin(), 100U + kConnections - 1);
  EXPECT_THAT(events(), IsEmpty());
}

TEST(EventPollStartTest, TheStartFailsWithoutDescriptors) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::optional<EventPoll> poll(std::in_place);
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(poll->descriptor(), 0);
  EXPECT_EQ(testkit::thrownText<Error>([&] { return poll->start(); }),
            "the system gives no descriptors for epoll: raise ulimit -n");
}

}  // namespace
}  // namespace jobq
