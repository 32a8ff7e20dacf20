// The numbers of the pages that are in one of SQLite's page caches.
#pragma once

#include <algorithm>

namespace jobq::sqlite {

/// Knows an upper bound of the numbers in a cache, so that a search for pages above a limit is made only if there may
/// be some. SQLite exchanges the numbers of two pages through a third one, which is far behind the end of most files
/// (balance_nonroot() of SQLite's btree.c): that number counts only while a page has it. Used by one thread at a time.
class PageNumbers {
 public:
  /// `pageSize` is in bytes.
  explicit PageNumbers(int pageSize) noexcept : exchange_(kLockedByte / static_cast<unsigned>(pageSize) + 1) {}

  /// Notes that the page `number` is in the cache, or may be.
  void add(unsigned number) noexcept { greatest_ = std::max(greatest_, number); }

  /// Notes that the page `from` has got the number `to`.
  void move(unsigned from, unsigned to) noexcept {
    if (from == exchange_) isExchanging_ = false;
    if (to == exchange_) {
      isExchanging_ = true;
    } else {
      add(to);
    }
  }

  /// Returns true if a page of the number `limit` or above may be in the cache.
  bool mayReach(unsigned limit) const noexcept { return greatest_ >= limit || (isExchanging_ && exchange_ >= limit); }

  /// Notes that the pages of the number `limit` and above have left the cache. `limit` is at least 1.
  void removeFrom(unsigned limit) noexcept {
    greatest_ = std::min(greatest_, limit - 1);
    if (exchange_ >= limit) isExchanging_ = false;
  }

  /// Returns the number that SQLite exchanges pages through: its page has no content, since the byte at 1 GB is a lock.
  unsigned exchange() const noexcept { return exchange_; }

 private:
  static constexpr unsigned kLockedByte = 0x4000'0000;

  const unsigned exchange_;
  unsigned greatest_ = 0;
  bool isExchanging_ = false;
};

}  // namespace jobq::sqlite
