#include "disk/page_cache.h"

#include <sqlite3.h>

#include <new>

#include "disk/page_numbers.h"

namespace jobq::sqlite {
namespace {

/// SQLite's own methods. Written once, before SQLite uses the layer.
sqlite3_pcache_methods2 sqlitesOwn;

/// The cache of one file of one connection. SQLite passes its address as a sqlite3_pcache.
struct NumberedCache {
  sqlite3_pcache* cache;
  PageNumbers numbers;
};

NumberedCache& numbered(sqlite3_pcache* cache) { return *reinterpret_cast<NumberedCache*>(cache); }

int beginUse(void*) { return sqlitesOwn.xInit(sqlitesOwn.pArg); }

void endUse(void*) { sqlitesOwn.xShutdown(sqlitesOwn.pArg); }

sqlite3_pcache* createCache(int pageSize, int extraSize, int isPurgeable) {
  sqlite3_pcache* const cache = sqlitesOwn.xCreate(pageSize, extraSize, isPurgeable);
  if (cache == nullptr) return nullptr;
  auto* const made = new (std::nothrow) NumberedCache{cache, PageNumbers(pageSize)};
  if (made == nullptr) sqlitesOwn.xDestroy(cache);
  return reinterpret_cast<sqlite3_pcache*>(made);
}

void setCacheSize(sqlite3_pcache* cache, int pages) { sqlitesOwn.xCachesize(numbered(cache).cache, pages); }

int countPages(sqlite3_pcache* cache) { return sqlitesOwn.xPagecount(numbered(cache).cache); }

sqlite3_pcache_page* fetchPage(sqlite3_pcache* cache, unsigned number, int create) {
  NumberedCache& own = numbered(cache);
  sqlite3_pcache_page* const page = sqlitesOwn.xFetch(own.cache, number, create);
  if (page != nullptr) own.numbers.add(number);
  return page;
}

void unpinPage(sqlite3_pcache* cache, sqlite3_pcache_page* page, int isDropped) {
  sqlitesOwn.xUnpin(numbered(cache).cache, page, isDropped);
}

void movePage(sqlite3_pcache* cache, sqlite3_pcache_page* page, unsigned from, unsigned to) {
  NumberedCache& own = numbered(cache);
  own.numbers.move(from, to);
  sqlitesOwn.xRekey(own.cache, page, from, to);
}

void dropPages(sqlite3_pcache* cache, unsigned limit) {
  NumberedCache& own = numbered(cache);
  if (!own.numbers.mayReach(limit)) return;
  sqlitesOwn.xTruncate(own.cache, limit);
  own.numbers.removeFrom(limit);
}

void destroyCache(sqlite3_pcache* cache) {
  const NumberedCache* const own = &numbered(cache);
  sqlitesOwn.xDestroy(own->cache);
  delete own;
}

void freeMemory(sqlite3_pcache* cache) { sqlitesOwn.xShrink(numbered(cache).cache); }

bool install() noexcept {
  if (sqlite3_config(SQLITE_CONFIG_GETPCACHE2, &sqlitesOwn) != SQLITE_OK) return false;
  sqlite3_pcache_methods2 layer{};
  layer.iVersion = 1;
  layer.xInit = beginUse;
  layer.xShutdown = endUse;
  layer.xCreate = createCache;
  layer.xCachesize = setCacheSize;
  layer.xPagecount = countPages;
  layer.xFetch = fetchPage;
  layer.xUnpin = unpinPage;
  layer.xRekey = movePage;
  layer.xTruncate = dropPages;
  layer.xDestroy = destroyCache;
  layer.xShrink = freeMemory;
  return sqlite3_config(SQLITE_CONFIG_PCACHE2, &layer) == SQLITE_OK;
}

}  // namespace

bool installPageCache() noexcept {
  static const bool kIsInstalled = install();
  return kIsInstalled;
}

}  // namespace jobq::sqlite
