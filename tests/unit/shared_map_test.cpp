// Tests of the sorted map whose versions share elements (core/base/shared_map.h).
#include "core/base/shared_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Thing {
  std::string key;
  int value = 0;
};

const std::string& keyOf(const Thing& thing) { return thing.key; }

using Things = SharedMap<Thing, keyOf>;

Things::Value thing(const std::string& key, int value = 0) { return std::make_shared<Thing>(Thing{key, value}); }

std::vector<std::string> keysOf(const std::vector<Things::Value>& things) {
  std::vector<std::string> keys;
  for (const Things::Value& each : things) keys.push_back(each->key);
  return keys;
}

TEST(SharedMapTest, APageBeginsAfterAPossiblyRemovedKey) {
  Things things;
  EXPECT_THAT(things.all(), IsEmpty());
  EXPECT_EQ(things.find("a"), nullptr);
  things.apply({{"b", thing("b")}, {"d", thing("d")}, {"f", thing("f")}});
  EXPECT_THAT(keysOf(things.page("", 2)), ElementsAre("b", "d"));
  EXPECT_THAT(keysOf(things.page("b", 9)), ElementsAre("d", "f"));
  EXPECT_THAT(keysOf(things.page("c", 1)), ElementsAre("d"));
  EXPECT_THAT(things.page("f", 9), IsEmpty());
  things.apply({{"b", nullptr}, {"d", nullptr}, {"f", nullptr}, {"g", nullptr}});
  EXPECT_EQ(things.size(), 0U);
  EXPECT_THAT(things.all(), IsEmpty());
}

TEST(SharedMapTest, AVersionStaysUnchanged) {
  Things first;
  first.apply({{"a", thing("a", 1)}});
  Things second = first;
  EXPECT_TRUE(second.isSame(first));
  second.apply({});
  EXPECT_TRUE(second.isSame(first));
  second.apply({{"a", thing("a", 2)}, {"b", thing("b")}});
  EXPECT_FALSE(second.isSame(first));
  EXPECT_EQ(first.find("a")->value, 1);
  EXPECT_EQ(first.size(), 1U);
  EXPECT_EQ(second.find("a")->value, 2);
}

// A key or an endpoint is made while 10,000 others exist, and every call reads the present version meanwhile.
TEST(SharedMapTest, AChangeCopiesFewElements) {
  constexpr int kMany = 10'000;
  constexpr std::size_t kFew = 200;
  Things things;
  Things::Changes all;
  for (int i = 0; i < kMany; ++i) all["k" + std::to_string(i)] = thing("k" + std::to_string(i));
  EXPECT_EQ(things.apply(all), all.size());
  for (int i = 0; i < kMany; ++i) {
    const std::string key = "n" + std::to_string(i);
    ASSERT_LE(things.apply({{key, thing(key)}}), kFew);
  }
  EXPECT_EQ(things.size(), 2U * kMany);
}

TEST(SharedMapTest, IsAMap) {
  std::mt19937 random(7);
  Things things;
  std::map<std::string, int> model;
  for (int round = 0; round < 400; ++round) {
    Things::Changes changes;
    for (std::uint32_t i = 0; i < 1 + random() % 40; ++i) {
      const std::string key = std::to_string(random() % 2'000);
      const bool isRemoval = random() % (round < 200 ? 4 : 2) == 0;
      changes[key] = isRemoval ? nullptr : thing(key, round);
    }
    things.apply(changes);
    for (const auto& [key, value] : changes) {
      if (value) model[key] = value->value;
      if (!value) model.erase(key);
    }
    ASSERT_EQ(things.size(), model.size());
  }
  std::vector<std::string> keys;
  for (const auto& [key, value] : model) {
    keys.push_back(key);
    ASSERT_EQ(things.find(key)->value, value);
  }
  EXPECT_EQ(keysOf(things.all()), keys);
  std::vector<std::string> paged;
  for (auto page = things.page("", 7); !page.empty(); page = things.page(page.back()->key, 7)) {
    for (const Things::Value& each : page) paged.push_back(each->key);
  }
  EXPECT_EQ(paged, keys);
}

}  // namespace
}  // namespace jobq
