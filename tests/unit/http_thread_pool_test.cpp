// Tests of the threads that serve connections (core/http/transport/http_thread_pool.h).
#include "core/http/transport/http_thread_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "connection_fixture.h"
#include "core/http/transport/connection.h"
#include "core/http/transport/message.h"
#include "socket_pair.h"
#include "testkit/wait_for.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using test::holdsSoon;
using testing::IsEmpty;
using testing::SizeIs;

class HttpThreadPoolTest : public testing::Test, protected test::ConnectionFixture, protected ConnectionHandler {
 protected:
  HttpThreadPoolTest() { threadsBusy_ = false; }
  std::unique_ptr<Connection> connection(std::uint64_t id) {
    test::SocketPair client;
    return std::make_unique<Connection>(id, client.releaseStream(), server_);
  }
  /// Serves the connection until letEnd(), and records the connection's begin.
  void serve(std::unique_ptr<Connection> connection) override {
    Lock lock(mutex_);
    begun_.push_back(connection->id());
    for (testkit::WaitDeadline wait("the permission to end"); ends_ == 0;) wait.on(changed_, mutex_);
    --ends_;
    ++ended_;
  }
  void letEnd(int count) {
    Lock lock(mutex_);
    ends_ += count;
    changed_.notifyAll();
  }
  std::vector<std::uint64_t> begun() {
    Lock lock(mutex_);
    return begun_;
  }
  bool begins(std::size_t count) {
    return holdsSoon([&] { return begun().size() >= count; });
  }
  bool ends(int count) {
    return holdsSoon([&] {
      Lock lock(mutex_);
      return ended_ >= count;
    });
  }

  test::FunctionHandlers handlers_{[](ServerRequest&, ServerResponse&) {}};
  const Connection::Server server_ = serverOf(handlers_);
  Mutex mutex_;
  Condition changed_;
  int ends_ JOBQ_GUARDED_BY(mutex_) = 0;
  int ended_ JOBQ_GUARDED_BY(mutex_) = 0;
  std::vector<std::uint64_t> begun_ JOBQ_GUARDED_BY(mutex_);
};

TEST_F(HttpThreadPoolTest, EachThreadServesACallAndTheRestWaitsInOrder) {
  HttpThreadPool threads({2, 2}, *this, crowd_);
  for (std::uint64_t id = 1; id <= 4; ++id) threads.submit(connection(id));
  ASSERT_TRUE(begins(2));
  EXPECT_THAT(begun(), SizeIs(2)) << "the pool has only two threads";
  letEnd(1);
  ASSERT_TRUE(begins(3));
  EXPECT_EQ(begun()[2], 3U);
  letEnd(1);
  ASSERT_TRUE(begins(4));
  EXPECT_EQ(begun()[3], 4U);
  letEnd(2);
  EXPECT_TRUE(ends(4));
}

TEST_F(HttpThreadPoolTest, ARestingThreadIsUsedAgain) {
  HttpThreadPool threads({1, 1}, *this, crowd_);
  for (std::uint64_t id = 1; id <= 20; ++id) {
    letEnd(1);
    threads.submit(connection(id));
    ASSERT_TRUE(ends(static_cast<int>(id))) << "connection " << id << " was not served";
  }
}

TEST_F(HttpThreadPoolTest, SaysWhenMoreThanHalfOfTheThreadsAreBusy) {
  HttpThreadPool threads({4, 4}, *this, crowd_);
  EXPECT_FALSE(threads.busyFlag());
  for (std::uint64_t id = 1; id <= 2; ++id) threads.submit(connection(id));
  ASSERT_TRUE(begins(2));
  EXPECT_FALSE(threads.busyFlag());
  threads.submit(connection(3));
  ASSERT_TRUE(begins(3));
  EXPECT_TRUE(threads.busyFlag());
  letEnd(3);
  EXPECT_TRUE(holdsSoon([&] { return !threads.busyFlag(); })) << "the threads are still busy";
}

TEST_F(HttpThreadPoolTest, ThreadsBeyondTheKeptThreadsEndSoon) {
  HttpThreadPool threads({4, 1}, *this, crowd_);
  for (std::uint64_t id = 1; id <= 4; ++id) threads.submit(connection(id));
  ASSERT_TRUE(begins(4));
  EXPECT_EQ(threads.size(), 4U);
  letEnd(4);
  ASSERT_TRUE(ends(4));
  EXPECT_TRUE(holdsSoon([&] { return threads.size() == 1; })) << "the idle threads do not end after a second";
}

TEST_F(HttpThreadPoolTest, AStopDropsTheQueueAndWaitsForTheRest) {
  HttpThreadPool threads({1, 1}, *this, crowd_);
  threads.submit(connection(1));
  ASSERT_TRUE(begins(1));
  threads.submit(connection(2));
  const auto dropped = threads.close();
  ASSERT_THAT(dropped, SizeIs(1)) << "the owner has to know the unserved connections";
  EXPECT_EQ(dropped[0]->id(), 2U);
  auto stopping = std::async(std::launch::async, [&threads] { threads.stop(); });
  letEnd(2);
  ASSERT_EQ(stopping.wait_for(test::kSoon), std::future_status::ready) << "the stop did not end";
  const auto served = begun();
  const auto refused = threads.submit(connection(3));
  ASSERT_TRUE(refused) << "no connection is served after a stop";
  EXPECT_EQ(refused->id(), 3U);
  EXPECT_EQ(begun(), served);
}

TEST_F(HttpThreadPoolTest, AnUnusedPoolStops) {
  HttpThreadPool threads({8, 8}, *this, crowd_);
  threads.stop();
  threads.stop();
  EXPECT_THAT(begun(), IsEmpty());
}

}  // namespace
}  // namespace jobq
