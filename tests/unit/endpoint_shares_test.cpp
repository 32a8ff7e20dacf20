// Tests of the shares of endpoints in the news between nodes, and in the jobs of vanished nodes.
#include "core/workers/pool/endpoint_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <string>

#include "core/workers/remote/inherited_jobs.h"
#include "core/workers/remote/remote_news.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::Pair;

/// Returns the news of `workers` workers of an endpoint, each with a list of 100 jobs unknown to every node.
NodeNews flood(const EndpointId& endpoint, int workers) {
  NodeNews news{1, {}};
  for (int i = 0; i < workers; ++i) {
    for (int job = 0; job < 100; ++job) {
      news.workers[{endpoint, std::to_string(i)}].unknown.insert(std::to_string(job));
    }
  }
  return news;
}

std::size_t unknownJobs(const NodeNews& news) {
  std::size_t count = 0;
  for (const auto& [key, worker] : news.workers) count += worker.unknown.size();
  return count;
}

TEST(RemoteNewsTest, InventedJobsOfAnEndpointDoNotLeaveOutJobsOfTheRest) {
  NodeNews news = flood("a", 320);
  WorkerNews& living = news.workers[{"z", "w"}];
  living.isConnected = true;
  living.listed = {{"j", 1}};
  living.unknown = {"k"};
  living.shown = {{"other", 7}};
  const NodeNews read = readNews(writeNews(news));
  EXPECT_EQ(read.workers.at({"z", "w"}), living);
  EXPECT_LE(unknownJobs(read), kMostNews);
  EXPECT_GE(unknownJobs(read), kMostNews - 400) << "unknown jobs fill the rest of the room";
}

TEST(RemoteNewsTest, RealWorkersAndJobsAreNeverLeftOut) {
  NodeNews news;
  for (int i = 0; i < 9'000; ++i) {
    WorkerNews& worker = news.workers[{"a", std::to_string(i)}];
    worker.isConnected = true;
    worker.jobs = {{"j", 1}};
    worker.listed = {{"l", 1}};
    worker.stops = {{"s", 2}, {"u", 0}};
    worker.unknown = {"k"};
    worker.asks = 5;
    worker.shown = {{"other", 7}};
  }
  const NodeNews read = readNews(writeNews(news));
  ASSERT_EQ(read.workers.size(), 9'000U);
  for (const auto& [key, worker] : read.workers) {
    WorkerNews left = news.workers.at(key);
    left.stops = {{"s", 2}};
    left.unknown.clear();
    left.shown.clear();
    left.isPartial = true;
    ASSERT_EQ(worker, left) << key.worker << ": the text is marked as partial";
  }
}

TEST(RemoteNewsTest, UnknownJobsAreLeftOutBeforeStops) {
  NodeNews news = flood("a", 150);
  for (int job = 0; job < 10'000; ++job) news.workers[{"a", "stopped"}].stops[std::to_string(job)] = 0;
  const NodeNews read = readNews(writeNews(news));
  EXPECT_EQ(read.workers.at({"a", "stopped"}), news.workers.at({"a", "stopped"}));
  EXPECT_LT(unknownJobs(read), 10'000U);
}

TEST(EndpointSharesTest, AnEndpointGetsTheWantedPlacesUpToAnEvenShare) {
  EXPECT_EQ(fairShares({{"a", 32'000}, {"b", 10}, {"c", 400}}, 1'000),
            (CountsByEndpoint{{"a", 590}, {"b", 10}, {"c", 400}}));
  EXPECT_EQ(fairShares({{"a", 9}, {"b", 9}}, 5), (CountsByEndpoint{{"a", 2}, {"b", 3}}));
  EXPECT_EQ(fairShares({{"a", 9}}, 20), (CountsByEndpoint{{"a", 9}}));
  EXPECT_EQ(fairShares({}, 20), CountsByEndpoint{});
}

TEST(EndpointSharesTest, TheEndpointsTakeTurns) {
  std::map<EndpointId, int> lists{{"a", 1}, {"b", 2}, {"c", 3}};
  EndpointId last;
  std::string order;
  for (int i = 0; i < 4; ++i) order += nextInTurn(lists, last)->first;
  EXPECT_EQ(order, "abca");
  lists.erase("b");
  EXPECT_EQ(nextInTurn(lists, last)->first, "c") << "the turn goes to the next endpoint";
}

TEST(EndpointSharesTest, AnEndpointTakesHalfOfTheRemainingPlaces) {
  EndpointPlaces places(100, 20, 4);
  for (const auto& [endpoint, share] : {std::pair("a", 40), std::pair("b", 20), std::pair("c", 10)}) {
    for (int i = 0; i < share; ++i) EXPECT_TRUE(places.reserve(endpoint));
    EXPECT_FALSE(places.reserve(endpoint)) << endpoint;
  }
}

TEST(EndpointSharesTest, TheLastPlacesAreForEndpointsWithFew) {
  EndpointPlaces places(10, 4, 2);
  const auto reserveAll = [&places](const EndpointId& endpoint) {
    int taken = 0;
    while (places.reserve(endpoint)) ++taken;
    return taken;
  };
  EXPECT_EQ(reserveAll("a"), 3);
  for (const char* few : {"b", "c", "d"}) EXPECT_EQ(reserveAll(few), 2) << few;
  EXPECT_EQ(reserveAll("e"), 1);
  EXPECT_EQ(reserveAll("f"), 0) << "no place is left";
  places.clear();
  places.add("a", 8);
  EXPECT_EQ(reserveAll("a"), 0);
  EXPECT_EQ(reserveAll("d"), 2);
}

TEST(InheritedJobsTest, InventedStopsOfAnEndpointTakeNoPlaceOfOtherEndpoints) {
  NodeNews news;
  for (int worker = 0; worker < 30; ++worker) {
    WorkerNews& flooder = news.workers[{"a", std::to_string(worker)}];
    for (int job = 0; job < 1'000; ++job) flooder.stops[std::to_string(job)] = 0;
  }
  news.workers[{"a", "9"}].jobs = {{"real", 1}};
  news.workers[{"z", "w"}].jobs = {{"j", 1}, {"k", 2}};
  InheritedJobs jobs;
  jobs.add(news);
  const NodeNews kept = jobs.news();
  EXPECT_THAT(kept.workers.at({"z", "w"}).jobs, ElementsAre(Pair("j", 1), Pair("k", 2)));
  EXPECT_TRUE(kept.workers.at({"a", "9"}).jobs.contains("real")) << "made-up stops are left out first";
  std::size_t count = 0;
  for (const auto& [key, worker] : kept.workers) count += worker.jobs.size();
  EXPECT_EQ(count, InheritedJobs::kMost);
  EXPECT_EQ(jobs.next().key.endpoint, "a");
  jobs.removeNext();
  EXPECT_EQ(jobs.next().key.endpoint, "z") << "the endpoints take turns";
  jobs.removeNext();
  EXPECT_EQ(jobs.next().key.endpoint, "a");
  EXPECT_EQ(jobs.next().lease.job, "k");
  jobs.removeNext();
  EXPECT_FALSE(jobs.news().workers.contains({"z", "w"}));
  jobs.keep({{"z", "w"}, {"k", 2}, false});
  EXPECT_THAT(jobs.news().workers.at({"z", "w"}).jobs, ElementsAre(Pair("k", 2)));
}

}  // namespace
}  // namespace jobq
