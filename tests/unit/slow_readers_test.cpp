// Tests of the places for clients that read slowly (core/http/transport/slow_readers.h).
#include "core/http/transport/slow_readers.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/http/transport/byte_stream.h"
#include "set_time.h"

namespace jobq {
namespace {

using std::chrono::seconds;

/// One end of a socket pair. The test sets the number of bytes read by the client.
class ReadStream final : public ByteStream {
 public:
  static std::unique_ptr<ReadStream> make() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    return std::unique_ptr<ReadStream>(new ReadStream(ends));
  }
  ~ReadStream() override { ::close(client_); }

  std::optional<std::size_t> read(char*, std::size_t, Wait) override { return std::nullopt; }
  std::optional<std::size_t> writeSome(std::string_view, std::string_view) override { return 0; }
  std::uint64_t bytesTaken() const noexcept override { return taken; }

  std::uint64_t taken = 1'000'000;

 private:
  explicit ReadStream(std::array<int, 2> ends) : ByteStream(ends[0]), client_(ends[1]) {}

  const int client_;
};

class SlowReadersTest : public testing::Test {
 protected:
  struct Client {
    std::unique_ptr<ReadStream> stream = ReadStream::make();
    SlowReaders::Place place{};

    bool isEnded() const { return stream->peerHasClosed(); }
  };

  Client& enter(std::uint64_t address, bool hasKey = true) {
    Client& client = *clients_.emplace_back(std::make_unique<Client>());
    client.place = readers_.enter({*client.stream, {AF_INET, address}, hasKey});
    return client;
  }
  std::vector<Client*> enterMany(std::size_t count, std::uint64_t address, bool hasKey = true) {
    std::vector<Client*> clients;
    for (std::size_t i = 0; i < count; ++i) clients.push_back(&enter(address, hasKey));
    return clients;
  }
  /// Lets each of the clients read so many bytes in each of `count` seconds.
  void pass(int count, const std::vector<std::pair<Client*, std::uint64_t>>& paces) {
    for (const auto& [client, pace] : paces) client->stream->taken += pace * static_cast<std::uint64_t>(count);
    time_.pass(seconds(count));
  }

  test::SetTime time_;
  SlowReaders readers_{8, time_};
  std::vector<std::unique_ptr<Client>> clients_;
};

TEST_F(SlowReadersTest, WithRoomEachReaderStays) {
  const auto clients = enterMany(8, 1);
  EXPECT_EQ(readers_.taken(), 8U);
  for (const Client* client : clients) EXPECT_FALSE(client->isEnded());
  clients[0]->place = {};
  EXPECT_EQ(readers_.taken(), 7U);
}

TEST_F(SlowReadersTest, TheOldestIdleReaderMakesRoom) {
  Client& reading = enter(1);
  const auto silent = enterMany(7, 2);
  pass(5, {{&reading, kDemandedPace}});
  Client& next = enter(2);
  EXPECT_TRUE(next.place.isTaken());
  EXPECT_TRUE(silent[0]->isEnded());
  EXPECT_EQ(readers_.taken(), 8U);
  silent[0]->place = {};
  EXPECT_EQ(readers_.taken(), 8U) << "the place has gone to a new reader";
  enterMany(6, 2);
  for (const Client* client : silent) EXPECT_TRUE(client->isEnded());
  EXPECT_FALSE(reading.isEnded()) << "the oldest client reads and stays";
}

TEST_F(SlowReadersTest, TheSlowestReaderMakesRoom) {
  const auto clients = enterMany(8, 1);
  std::vector<std::pair<Client*, std::uint64_t>> paces;
  for (std::size_t i = 0; i < 8; ++i) paces.emplace_back(clients[i], (20 - i) * kDemandedPace);
  pass(3, paces);
  enter(2);
  EXPECT_TRUE(clients[7]->isEnded());
  EXPECT_FALSE(clients[0]->isEnded());
}

TEST_F(SlowReadersTest, AnAddressWithManyPlacesMakesRoomForOtherAddresses) {
  Client& other = enter(1);
  const auto many = enterMany(7, 2);
  std::vector<std::pair<Client*, std::uint64_t>> paces{{&other, kDemandedPace}};
  for (Client* client : many) paces.emplace_back(client, 100 * kDemandedPace);
  pass(3, paces);
  enter(3);
  EXPECT_FALSE(other.isEnded()) << "the slowest client has the only place of an address";
  EXPECT_TRUE(many[0]->isEnded());
}

TEST_F(SlowReadersTest, ANewReaderIsNotJudgedYet) {
  const auto silent = enterMany(7, 1);
  time_.pass(seconds(1));
  Client& young = enter(1);
  for (int i = 0; i < 7; ++i) enter(1);
  for (const Client* client : silent) EXPECT_TRUE(client->isEnded());
  EXPECT_FALSE(young.isEnded());
  enter(2);
  EXPECT_TRUE(young.isEnded()) << "all clients are new, so the oldest has to leave";
}

TEST_F(SlowReadersTest, ReadersWithoutAKeyHaveAQuarter) {
  const auto keyless = enterMany(3, 1, false);
  EXPECT_TRUE(keyless[0]->isEnded());
  EXPECT_FALSE(keyless[1]->isEnded());
  EXPECT_EQ(readers_.taken(), 2U);
  const auto withKey = enterMany(6, 1);
  time_.pass(seconds(2));
  Client& next = enter(2, false);
  EXPECT_TRUE(next.place.isTaken());
  EXPECT_TRUE(keyless[1]->isEnded());
  for (const Client* client : withKey) EXPECT_FALSE(client->isEnded());
}

TEST_F(SlowReadersTest, AReaderWithoutAKeyEndsNoReaderWithAKey) {
  const auto withKey = enterMany(8, 1);
  time_.pass(seconds(2));
  EXPECT_FALSE(enter(2, false).place.isTaken());
  for (const Client* client : withKey) EXPECT_FALSE(client->isEnded());
}

}  // namespace
}  // namespace jobq
