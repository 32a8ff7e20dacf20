// Tests of the parked connections: deadlines in order, ways out, and the budgets of a connection that ends
// (core/http/transport/parked_connections.h).
#include "core/http/transport/parked_connections.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <optional>
#include <string>
#include <vector>

#include "connection_fixture.h"
#include "core/http/transport/address_places.h"
#include "socket_pair.h"

namespace jobq {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using State = ParkedConnection::State;

class ParkedConnectionsTest : public testing::Test, protected test::ConnectionFixture {
 protected:
  static ParkedConnection::Moment at(int second) { return ParkedConnection::Moment(seconds(second)); }
  void park(std::uint64_t id, State state, int second) {
    test::SocketPair pair;
    parked_.add({std::make_unique<Connection>(id, pair.releaseStream(), server_), state, at(second)});
  }
  void suspend(std::uint64_t id) {
    test::SocketPair pair;
    parked_.add({std::make_unique<Connection>(id, pair.releaseStream(), server_), State::suspended,
                 ParkedConnection::Moment::max()});
  }
  static std::vector<std::uint64_t> idsOf(const std::vector<ParkedConnection>& taken) {
    std::vector<std::uint64_t> ids;
    for (const ParkedConnection& each : taken) ids.push_back(each.connection->id());
    return ids;
  }

  test::FunctionHandlers handlers_{[](ServerRequest&, ServerResponse&) {}};
  const Connection::Server server_ = serverOf(handlers_);
  ParkedConnections parked_;
};

TEST_F(ParkedConnectionsTest, TellTheEarliestDeadline) {
  EXPECT_TRUE(parked_.empty());
  EXPECT_EQ(parked_.nextDeadline(), std::nullopt);
  park(1, State::idle, 30);
  park(2, State::readingHead, 10);
  park(3, State::lingeringClose, 20);
  EXPECT_FALSE(parked_.empty());
  EXPECT_EQ(parked_.nextDeadline(), at(10));
  EXPECT_TRUE(parked_.extract(2));
  EXPECT_EQ(parked_.nextDeadline(), at(20));
}

TEST_F(ParkedConnectionsTest, ATakenConnectionKeepsTheStateAndIsGone) {
  park(7, State::lingeringClose, 30);
  const auto taken = parked_.extract(7);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->connection->id(), 7U);
  EXPECT_EQ(taken->state, State::lingeringClose);
  EXPECT_EQ(taken->deadline, at(30));
  EXPECT_FALSE(parked_.extract(7));
  EXPECT_TRUE(parked_.empty());
  EXPECT_EQ(parked_.nextDeadline(), std::nullopt);
}

TEST_F(ParkedConnectionsTest, AConnectionIsLateFromTheDeadlineOn) {
  park(1, State::idle, 30);
  park(2, State::readingHead, 10);
  park(3, State::idle, 10);
  park(4, State::lingeringClose, 20);
  EXPECT_THAT(parked_.extractLate(at(9)), IsEmpty());
  EXPECT_THAT(idsOf(parked_.extractLate(at(20))), ElementsAre(2, 3, 4));
  EXPECT_THAT(idsOf(parked_.extractLate(at(20))), IsEmpty());
  EXPECT_EQ(parked_.nextDeadline(), at(30));
}

TEST_F(ParkedConnectionsTest, ConnectionsWithoutARequestAreUnserved) {
  park(1, State::idle, 30);
  park(2, State::readingHead, 10);
  park(3, State::lingeringClose, 20);
  park(4, State::awaitingInput, 25);
  suspend(5);
  EXPECT_THAT(idsOf(parked_.extractUnserved()), UnorderedElementsAre(1, 2));
  EXPECT_EQ(parked_.nextDeadline(), at(20));
  EXPECT_THAT(idsOf(parked_.extractAll()), UnorderedElementsAre(3, 4, 5));
  EXPECT_TRUE(parked_.empty());
  EXPECT_EQ(parked_.nextDeadline(), std::nullopt);
}

TEST_F(ParkedConnectionsTest, ASuspendedConnectionHasNoDeadline) {
  suspend(5);
  EXPECT_EQ(parked_.nextDeadline(), std::nullopt);
  EXPECT_THAT(parked_.extractLate(at(1'000'000)), IsEmpty());
  park(6, State::awaitingInput, 10);
  EXPECT_FALSE(parked_.extractSuspended(6)) << "a request without a whole body is not resumed";
  ASSERT_TRUE(parked_.extractSuspended(5));
  EXPECT_FALSE(parked_.extractSuspended(5));
  EXPECT_THAT(idsOf(parked_.extractLate(at(10))), ElementsAre(6));
}

TEST_F(ParkedConnectionsTest, BudgetsReturnWithTheEndOfATakenConnection) {
  AddressPlaces places(1);
  sockaddr_storage peer{};
  peer.ss_family = AF_INET;
  test::SocketPair client;
  auto connection = std::make_unique<Connection>(1, client.releaseStream(), server_, std::move(*places.reserve(peer)));
  client.send("GET / HTTP/1.1\r\nX: " + std::string(3 * ReadBuffer::kFree, 'x'));
  ASSERT_EQ(connection->receive(), Connection::Ready::no);
  const std::uint64_t left = heads_.left();
  EXPECT_LT(left, 1UL << 20) << "a long head draws on the budget";
  parked_.add({std::move(connection), State::readingHead, at(10)});
  {
    const auto late = parked_.extractLate(at(10));
    ASSERT_EQ(late.size(), 1U);
    EXPECT_EQ(heads_.left(), left) << "the caller may still answer";
    EXPECT_EQ(places.taken(), 1U);
  }
  EXPECT_EQ(heads_.left(), 1UL << 20);
  EXPECT_EQ(places.taken(), 0U);
}

}  // namespace
}  // namespace jobq
