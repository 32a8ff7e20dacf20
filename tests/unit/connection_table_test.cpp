// Tests of the places of connections: events, deadlines, the watch on clients, and the way to a quiet reactor
// (core/http/transport/connection_table.h).
#include "core/http/transport/connection_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <future>
#include <memory>
#include <vector>

#include "connection_fixture.h"
#include "socket_pair.h"
#include "testkit/wait_for.h"

namespace jobq {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using Moment = ParkedConnection::Moment;
using State = ParkedConnection::State;

constexpr milliseconds kSoon = testkit::kHangDeadline;

class ConnectionTableTest : public testing::Test, protected test::ConnectionFixture {
 protected:
  ConnectionTableTest() { poll_.start(); }

  static Moment at(int second) { return Moment(seconds(second)); }
  std::unique_ptr<Connection> connect(std::uint64_t id, test::SocketPair& client) {
    auto connection = std::make_unique<Connection>(id, client.releaseStream(), server_);
    EXPECT_TRUE(poll_.add(*connection));
    return connection;
  }
  void park(std::uint64_t id, test::SocketPair& client, State state = State::idle, int second = 30) {
    table_.park({connect(id, client), state, at(second)});
  }
  /// Returns the ids of the events that come within the time.
  std::vector<std::uint64_t> events(milliseconds atMost) {
    std::vector<std::uint64_t> ids;
    for (const epoll_event& event : poll_.wait(static_cast<int>(atMost.count()))) ids.push_back(event.data.u64);
    return ids;
  }
  bool quiet() { return table_.awaitQuiet(milliseconds(0)); }

  test::FunctionHandlers handlers_{[](ServerRequest&, ServerResponse&) {}};
  const Connection::Server server_ = serverOf(handlers_);
  EventPoll poll_;
  ConnectionTable table_{poll_};
  test::SocketPair client_;
};

TEST_F(ConnectionTableTest, AParkedConnectionHasASingleEvent) {
  park(7, client_);
  EXPECT_THAT(events(milliseconds(0)), IsEmpty());
  client_.send("GET");
  EXPECT_THAT(events(kSoon), ElementsAre(7));
  EXPECT_THAT(events(milliseconds(0)), IsEmpty()) << "the next event needs a new park()";
  auto taken = table_.extractReady(7);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(table_.extractReady(7));
  table_.park(std::move(*taken));
  EXPECT_THAT(events(kSoon), ElementsAre(7));
}

// A drain looks for connections while the reactor thread reads a head: the request must not be cut off.
TEST_F(ConnectionTableTest, AConnectionInTheHandsOfTheReactorIsNotQuiet) {
  park(7, client_);
  EXPECT_FALSE(quiet());
  table_.drain();
  const auto taken = table_.extractReady(7);
  ASSERT_TRUE(taken);
  EXPECT_FALSE(quiet()) << "the connection is between the event and the thread";
  EXPECT_EQ(table_.openRequests(), 0U);
  ASSERT_TRUE(table_.beginServing(*taken->connection, at(10)));
  EXPECT_FALSE(quiet());
  EXPECT_EQ(table_.openRequests(), 1U);
  EXPECT_EQ(table_.headDeadline(7), at(10));
  table_.forget(7);
  EXPECT_TRUE(quiet());
  EXPECT_EQ(table_.openRequests(), 0U);
}

TEST_F(ConnectionTableTest, ALateConnectionIsNotQuietBeforeTheRefusalIsSent) {
  park(7, client_, State::readingHead, 10);
  table_.drain();
  EXPECT_THAT(table_.extractLate(at(9)), IsEmpty());
  auto late = table_.extractLate(at(10));
  ASSERT_EQ(late.size(), 1U);
  EXPECT_FALSE(quiet());
  late[0].state = State::lingeringClose;
  table_.park(std::move(late[0]));
  EXPECT_FALSE(quiet()) << "the client still reads";
  EXPECT_TRUE(table_.extractReady(7));
  table_.forget(7);
  EXPECT_TRUE(quiet());
}

TEST_F(ConnectionTableTest, ALateConnectionHasNoEventLeft) {
  park(7, client_, State::awaitingInput, 10);
  auto late = table_.extractLate(at(10));
  ASSERT_EQ(late.size(), 1U);
  ASSERT_TRUE(table_.beginServing(*late[0].connection, at(10)));
  client_.send("the rest of the body");
  EXPECT_THAT(events(milliseconds(0)), IsEmpty()) << "a suspended request would take the event for the client's end";
  table_.forget(7);
}

TEST_F(ConnectionTableTest, RequestsWithoutAWholeAnswerAreOpen) {
  test::SocketPair clients[5];
  park(1, clients[0], State::idle);
  park(2, clients[1], State::lingeringClose);
  EXPECT_EQ(table_.openRequests(), 0U);
  park(3, clients[2], State::awaitingInput);
  park(4, clients[3], State::awaitingOutput);
  EXPECT_EQ(table_.openRequests(), 2U);
  auto served = connect(5, clients[4]);
  ASSERT_TRUE(table_.beginServing(*served, at(10)));
  EXPECT_EQ(table_.openRequests(), 3U);
  ASSERT_FALSE(table_.suspend(std::move(served)));
  EXPECT_EQ(table_.openRequests(), 3U);
}

TEST_F(ConnectionTableTest, TheLastConnectionWakesTheWaitForQuiet) {
  park(7, client_);
  const auto taken = table_.extractReady(7);
  std::future<bool> waited = std::async(std::launch::async, [this] { return table_.awaitQuiet(kSoon); });
  table_.forget(7);
  EXPECT_TRUE(waited.get());
}

TEST_F(ConnectionTableTest, ADrainClosesConnectionsWithoutARequest) {
  test::SocketPair leaving, late;
  park(7, client_);
  park(8, leaving, State::lingeringClose);
  table_.drain();
  table_.closeUnserved();
  EXPECT_TRUE(client_.received().empty() && client_.sawEnd());
  EXPECT_TRUE(leaving.received().empty() && !leaving.sawEnd()) << "the client may still read the last answer";
  park(9, late);
  EXPECT_TRUE(late.received().empty() && late.sawEnd());
  EXPECT_FALSE(quiet());
  table_.beginStop();
  table_.closeUnserved();
  EXPECT_TRUE(leaving.received().empty() && leaving.sawEnd());
  EXPECT_TRUE(quiet());
}

TEST_F(ConnectionTableTest, AStopCutsServedConnectionsAndForgetsDroppedConnections) {
  test::SocketPair dropped, reading;
  const auto served = connect(7, client_);
  ASSERT_TRUE(table_.beginServing(*served, at(10)));
  std::deque<std::unique_ptr<Connection>> queued;
  queued.push_back(connect(8, dropped));
  ASSERT_TRUE(table_.beginServing(*queued.back(), at(10)));
  park(9, reading);
  const auto inHand = table_.extractReady(9);
  table_.beginStop();
  table_.cutServed(queued);
  EXPECT_TRUE(client_.received().empty() && client_.sawEnd());
  EXPECT_EQ(table_.openRequests(), 1U);
  EXPECT_TRUE(reading.received().empty() && !reading.sawEnd()) << "only the reactor thread closes the connection";
  EXPECT_FALSE(table_.beginServing(*inHand->connection, at(10)));
  table_.forget(7);
  EXPECT_TRUE(quiet());
}

TEST_F(ConnectionTableTest, TheWatchShowsAHandlerTheDepartureOfTheClient) {
  const auto served = connect(7, client_);
  ASSERT_TRUE(table_.beginServing(*served, at(10)));
  const std::stop_token gone = table_.watch(7);
  client_.send("more input is no sign");
  EXPECT_THAT(events(milliseconds(0)), IsEmpty());
  client_.hangUp();
  EXPECT_THAT(events(kSoon), ElementsAre(7));
  EXPECT_FALSE(table_.extractReady(7));
  EXPECT_TRUE(gone.stop_requested());
  table_.unwatch(7);
  EXPECT_FALSE(table_.extractReady(7)) << "neither watched nor parked";
  table_.forget(7);
  table_.unwatch(7);  // no change: a stop may forget a connection before the end of the watch
}

TEST_F(ConnectionTableTest, ASuspendedConnectionIsTakenByTheResumption) {
  auto served = connect(7, client_);
  ASSERT_TRUE(table_.beginServing(*served, at(10)));
  ASSERT_FALSE(table_.suspend(std::move(served)));
  EXPECT_FALSE(quiet());
  EXPECT_EQ(table_.openRequests(), 1U);
  client_.send("a pipelined request is no event");
  EXPECT_THAT(events(milliseconds(0)), IsEmpty());
  auto resumed = table_.extractSuspended(7);
  ASSERT_TRUE(resumed);
  EXPECT_FALSE(table_.extractSuspended(7));
  EXPECT_FALSE(table_.extractSuspended(8)) << "an unknown call";
  ASSERT_TRUE(table_.beginServing(*resumed, at(10)));
  table_.forget(7);
  EXPECT_TRUE(quiet());
}

TEST_F(ConnectionTableTest, AResumptionBeforeTheSuspensionIsNotLost) {
  auto served = connect(7, client_);
  ASSERT_TRUE(table_.beginServing(*served, at(10)));
  EXPECT_FALSE(table_.extractSuspended(7));
  served = table_.suspend(std::move(served));
  ASSERT_TRUE(served) << "the request goes on at once";
  ASSERT_FALSE(table_.suspend(std::move(served))) << "a resumption continues the request once";
  EXPECT_TRUE(table_.extractSuspended(7));
}

TEST_F(ConnectionTableTest, TheEndOfTheClientTakesASuspendedConnection) {
  auto served = connect(7, client_);
  ASSERT_TRUE(table_.beginServing(*served, at(10)));
  ASSERT_FALSE(table_.suspend(std::move(served)));
  client_.hangUp();
  EXPECT_THAT(events(kSoon), ElementsAre(7));
  const auto taken = table_.extractReady(7);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->state, State::suspended);
  EXPECT_FALSE(table_.extractSuspended(7)) << "the client and the job end at the same time";
}

TEST_F(ConnectionTableTest, OnlyAStopClosesSuspendedConnectionsAndADrainDoesNot) {
  auto served = connect(7, client_);
  ASSERT_TRUE(table_.beginServing(*served, at(10)));
  table_.drain();
  ASSERT_FALSE(table_.suspend(std::move(served)));
  table_.closeUnserved();
  EXPECT_FALSE(quiet()) << "the request is in flight";
  test::SocketPair other;
  auto late = connect(8, other);
  ASSERT_TRUE(table_.beginServing(*late, at(10)));
  table_.beginStop();
  EXPECT_FALSE(table_.suspend(std::move(late)));
  EXPECT_FALSE(table_.extractSuspended(8));
  table_.closeUnserved();
  EXPECT_TRUE(quiet());
  EXPECT_EQ(client_.received(), "");
}

TEST_F(ConnectionTableTest, TheSleepEndsAtTheFirstDeadline) {
  EXPECT_EQ(table_.untilNextDeadline({}, at(0)), -1);
  EXPECT_EQ(table_.untilNextDeadline(at(5), at(0)), 5'000);
  park(7, client_, State::idle, 30);
  EXPECT_EQ(table_.untilNextDeadline({}, at(0)), 30'000);
  EXPECT_EQ(table_.untilNextDeadline(at(40), at(0)), 30'000);
  EXPECT_EQ(table_.untilNextDeadline(at(5), at(0)), 5'000);
  EXPECT_EQ(table_.untilNextDeadline({}, at(31)), 0);
  EXPECT_EQ(table_.untilNextDeadline({}, at(-3'600)), 60'000);
  EXPECT_EQ(table_.untilNextDeadline({}, at(30) - std::chrono::microseconds(1)), 1) << "never before the deadline";
  table_.beginStop();
  EXPECT_EQ(table_.untilNextDeadline({}, at(0)), 30'000) << "the reactor must not spin before a stop";
}

TEST_F(ConnectionTableTest, AnEarlierDeadlineWakesTheReactor) {
  test::SocketPair later, sooner;
  park(7, client_, State::idle, 30);
  EXPECT_THAT(events(milliseconds(0)), IsEmpty());
  EXPECT_EQ(table_.untilNextDeadline({}, at(0)), 30'000);
  park(8, later, State::idle, 40);
  EXPECT_THAT(events(milliseconds(0)), IsEmpty());
  park(9, sooner, State::lingeringClose, 2);
  EXPECT_THAT(events(kSoon), ElementsAre(EventPoll::kWakeup));
  poll_.clearWakeup();
  EXPECT_THAT(events(milliseconds(0)), IsEmpty());
}

}  // namespace
}  // namespace jobq
