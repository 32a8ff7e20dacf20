// Tests of the layer above SQLite's page cache (plugins/storage_sqlite/disk/page_cache.h). All tests of the program
// have the layer below their connections, as in a server.
#include "plugins/storage_sqlite/disk/page_cache.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "plain_database.h"
#include "plugins/storage_sqlite/disk/page_numbers.h"
#include "sqlite_fixture.h"

namespace jobq::testkit {
namespace {

using sqlite::PageNumbers;

constexpr int kPageSize = 4'096;
const unsigned kExchange = PageNumbers(kPageSize).exchange();

/// Calls of the layer to the cache below.
struct CacheCalls {
  std::atomic<int> exchanges{0};  ///< pages that got the number of the exchange
  std::atomic<int> drops{0};      ///< searches for pages behind the end of a file, beside the emptying of whole caches
};
CacheCalls cacheCalls;
sqlite3_pcache_methods2 sqlitesCache;
sqlite3_pcache_methods2 layer;

void countedMove(sqlite3_pcache* cache, sqlite3_pcache_page* page, unsigned from, unsigned to) {
  if (to == kExchange) ++cacheCalls.exchanges;
  sqlitesCache.xRekey(cache, page, from, to);
}

void countedDrop(sqlite3_pcache* cache, unsigned limit) {
  if (limit > 1) ++cacheCalls.drops;
  sqlitesCache.xTruncate(cache, limit);
}

// SQLite takes a cache only before its first use, so the layers are installed before the first test.
const bool kIsInstalled = [] {
  if (sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &sqlitesCache) != SQLITE_OK) return false;
  sqlite3_pcache_methods2 counting = sqlitesCache;
  counting.xRekey = countedMove;
  counting.xTruncate = countedDrop;
  return sqlite3_config(SQLITE_CONFIG_PCACHE2, &counting) == SQLITE_OK && sqlite::installPageCache() &&
         sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &layer) == SQLITE_OK;
}();

TEST(PageNumbersTest, TheGreatestPageIsTheBound) {
  PageNumbers numbers(kPageSize);
  EXPECT_FALSE(numbers.mayReach(1));
  numbers.add(7);
  numbers.add(3);
  EXPECT_TRUE(numbers.mayReach(7));
  EXPECT_FALSE(numbers.mayReach(8));
  numbers.move(3, 9);
  EXPECT_TRUE(numbers.mayReach(9));
  numbers.removeFrom(5);
  EXPECT_TRUE(numbers.mayReach(4)) << "no page below the limit has left";
  EXPECT_FALSE(numbers.mayReach(5));
}

TEST(PageNumbersTest, TheNumberOfAnExchangeCountsWhileAPageUsesTheNumber) {
  PageNumbers numbers(kPageSize);
  numbers.add(9);
  numbers.move(5, kExchange);
  EXPECT_TRUE(numbers.mayReach(10));
  EXPECT_TRUE(numbers.mayReach(kExchange));
  EXPECT_FALSE(numbers.mayReach(kExchange + 1));
  numbers.move(9, 5);
  numbers.move(kExchange, 9);
  EXPECT_FALSE(numbers.mayReach(10));
  numbers.move(5, kExchange);
  numbers.removeFrom(10);
  EXPECT_FALSE(numbers.mayReach(10)) << "the page has left the cache";
}

TEST(PageNumbersTest, AFileOverOneGigabyteHasGreaterNumbers) {
  PageNumbers numbers(kPageSize);
  numbers.add(kExchange + 10);
  numbers.move(kExchange + 10, kExchange);
  numbers.move(kExchange, kExchange + 5);
  EXPECT_TRUE(numbers.mayReach(kExchange + 10)) << "an upper bound";
  numbers.removeFrom(kExchange + 1);
  numbers.add(kExchange);
  EXPECT_TRUE(numbers.mayReach(kExchange)) << "SQLite requested the page";
}

class PageCacheTest : public SqliteTest {
 protected:
  void SetUp() override {
    SqliteTest::SetUp();
    ASSERT_TRUE(kIsInstalled) << "SQLite was in use before main()";
    ASSERT_TRUE(sqlite::installPageCache()) << "a later call has the answer of the first";
  }
};

TEST_F(PageCacheTest, CommitsOfTheStorageSearchForNoPages) {
  open();
  cacheCalls.exchanges = 0;
  cacheCalls.drops = 0;
  constexpr int kJobs = 500;
  for (int i = 0; i < kJobs; ++i) {
    JobSpec job = spec("job-" + std::to_string(i * 7'919 % kJobs));
    job.input = '"' + std::string(200 + i, 'x') + '"';
    submit(job);
  }
  for (const ClaimedJob& job : claim(kJobs)) {
    ASSERT_EQ(storage_->leases().finish(job.lease, Completed{job.input}), ReportResult::accepted);
  }
  EXPECT_GT(cacheCalls.exchanges, 0) << "SQLite exchanges no pages, so the layer is useless";
  EXPECT_EQ(cacheCalls.drops, 0);
}

/// A cache of the layer beside a model of its pages, with the calls of SQLite for a growing and shrinking file.
class ModelledCache {
 public:
  ModelledCache(int pageSize, unsigned seed)
      : cache_(layer.xCreate(pageSize, 64, 1)), exchange_(PageNumbers(pageSize).exchange()), random_(seed) {
    layer.xCachesize(cache_, 1'000);
  }
  ~ModelledCache() { layer.xDestroy(cache_); }
  ModelledCache(const ModelledCache&) = delete;
  ModelledCache& operator=(const ModelledCache&) = delete;

  void act() {
    const unsigned one = 1 + below(size_);
    const unsigned other = 1 + below(size_);
    switch (below(9)) {
      case 0: size_ = 1 + below(size_); break;
      case 1: drop(size_ + 1); break;
      case 2:
        if (has(one) && has(other) && one != other && !has(exchange_)) exchange(one, other);
        break;
      case 3:
        if (has(one) && !has(exchange_)) move(one, exchange_);
        break;
      case 4:
        if (has(one) && !has(size_ + 1)) move(one, size_ + 1);
        break;
      case 5: discard(below(2) == 0 ? one : exchange_); break;
      case 6: fetch(below(30) == 0 ? numberOf(55 + below(6)) : one); break;
      default:
        if (size_ < 54) fetch(++size_);
    }
  }

  // A look at the pages would tell the layer their numbers.
  void checkCount() { ASSERT_EQ(layer.xPagecount(cache_), static_cast<int>(pages_.size())); }

  void check() {
    for (unsigned i = 0; i <= kNumbers; ++i) {
      const unsigned number = numberOf(i);
      sqlite3_pcache_page* const page = layer.xFetch(cache_, number, 0);
      ASSERT_EQ(page != nullptr, has(number)) << number;
      if (page != nullptr) layer.xUnpin(cache_, page, 0);
    }
  }

 private:
  static constexpr unsigned kNumbers = 60;

  unsigned below(unsigned bound) { return std::uniform_int_distribution<unsigned>(0, bound - 1)(random_); }
  /// Returns one of 55 low numbers, the number of the exchange, or one of five numbers above.
  unsigned numberOf(unsigned i) const { return i < 55 ? i + 1 : exchange_ + i - 55; }
  bool has(unsigned number) const { return pages_.contains(number); }

  void fetch(unsigned number) {
    sqlite3_pcache_page* const page = layer.xFetch(cache_, number, 2);
    ASSERT_NE(page, nullptr);
    layer.xUnpin(cache_, page, 0);
    pages_.insert(number);
  }
  void discard(unsigned number) {
    sqlite3_pcache_page* const page = layer.xFetch(cache_, number, 0);
    if (page != nullptr) layer.xUnpin(cache_, page, 1);
    pages_.erase(number);
  }
  void move(unsigned from, unsigned to) {
    sqlite3_pcache_page* const page = layer.xFetch(cache_, from, 0);
    ASSERT_NE(page, nullptr);
    layer.xRekey(cache_, page, from, to);
    layer.xUnpin(cache_, page, 0);
    pages_.erase(from);
    pages_.insert(to);
  }
  void exchange(unsigned one, unsigned other) {
    move(one, exchange_);
    move(other, one);
    move(exchange_, other);
  }
  void drop(unsigned limit) {
    layer.xTruncate(cache_, limit);
    pages_.erase(pages_.lower_bound(limit), pages_.end());
  }

  sqlite3_pcache* const cache_;
  const unsigned exchange_;
  std::mt19937 random_;
  unsigned size_ = 20;  // pages of the file
  std::set<unsigned> pages_;
};

TEST_F(PageCacheTest, TheLayerDropsTheSamePagesAsSqlitesCache) {
  ASSERT_EQ(sqlite3_initialize(), SQLITE_OK);
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ModelledCache cache(seed % 2 == 0 ? 512 : 65'536, seed);
    for (int i = 0; i < 500; ++i) {
      cache.act();
      ASSERT_NO_FATAL_FAILURE(cache.checkCount()) << i;
    }
    ASSERT_NO_FATAL_FAILURE(cache.check());
  }
}

/// A table beside a model of its content. The transactions grow and shrink the file.
class ShrinkingTable {
 public:
  explicit ShrinkingTable(PlainDatabase& database, unsigned seed) : database_(database), random_(seed) {
    database_.run("PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL");
    database_.run("CREATE TABLE row (n TEXT PRIMARY KEY, body TEXT) WITHOUT ROWID; CREATE INDEX body ON row (body)");
  }

  void transact() {
    std::map<std::string, std::string> next = rows_;
    database_.run("BEGIN IMMEDIATE");
    for (int changes = below(80); changes >= 0; --changes) change(next);
    if (below(6) == 0) database_.run("PRAGMA incremental_vacuum(20)");
    if (below(4) > 0) {
      database_.run("COMMIT");
      rows_ = std::move(next);
    } else {
      database_.run("ROLLBACK");
    }
    if (below(10) == 0) database_.run("VACUUM");
    if (below(10) == 0) database_.run("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  std::string expected() const {
    std::string all;
    for (const auto& [name, body] : rows_) all += name + "=" + std::to_string(body.size()) + body.substr(0, 1) + ";";
    return all;
  }

 private:
  int below(int bound) { return std::uniform_int_distribution<int>(0, bound - 1)(random_); }

  void change(std::map<std::string, std::string>& rows) {
    const std::string name = std::to_string(below(500));
    if (below(3) == 0) {
      rows.erase(name);
      database_.run("DELETE FROM row WHERE n = '" + name + "'");
      return;
    }
    std::string body(static_cast<std::size_t>(1 + below(3'000)), static_cast<char>('a' + below(26)));
    database_.run("INSERT OR REPLACE INTO row VALUES ('" + name + "', '" + body + "')");
    rows[name] = std::move(body);
  }

  PlainDatabase& database_;
  std::mt19937 random_;
  std::map<std::string, std::string> rows_;
};

constexpr char kContent[] =
    "SELECT coalesce(group_concat(n || '=' || length(body) || substr(body, 1, 1) || ';', ''), '') "
    "FROM (SELECT * FROM row ORDER BY n)";

// SQLite above the layer. The test above judges which pages leave the cache.
TEST_F(PageCacheTest, ShrinkingAndGrowingFilesKeepTheContent) {
  cacheCalls.exchanges = 0;
  cacheCalls.drops = 0;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PlainDatabase database(dir_ / ("shrinks" + std::to_string(seed) + ".db"), nullptr);
    ShrinkingTable table(database, seed);
    for (int i = 0; i < 60; ++i) {
      table.transact();
      ASSERT_EQ(database.text(kContent), table.expected()) << i;
      ASSERT_EQ(database.text("PRAGMA integrity_check"), "ok") << i;
    }
  }
  EXPECT_GT(cacheCalls.exchanges, 0);
  EXPECT_GT(cacheCalls.drops, 0) << "the files have never shrunk";
}

}  // namespace
}  // namespace jobq::testkit
