// Tests of the pages of lists of jobs (plugins/storage_sql/listing.h).
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "plugins/storage_sql/listing.h"

namespace jobq {
namespace {

/// A row of a list, as PageBuilder reads rows.
struct ListedRow {
  JobId id;
  std::string key;
  std::uint64_t num;

  std::string text(int column) const { return column == 0 ? id : column == sql::kJobColumns + 2 ? key : ""; }
  static JobState state(int) { return JobState::completed; }
  static std::uint32_t number(int) { return 0; }
  static bool flag(int) { return false; }
  static Instant instant(int) { return Instant{}; }
  static std::optional<Instant> instantOrNone(int) { return std::nullopt; }
  std::uint64_t count(int) const { return num; }
};

TEST(PageBuilderTest, APagePassesOverABoundedNumberOfOtherJobs) {
  const JobFilter filter{"ep", {}, "mine"};
  const PageWindow window{0, 2};
  JobPage page;
  sql::PageBuilder builder(page, filter, window);
  EXPECT_EQ(builder.most(), 3 + kMostPassedOver);
  std::uint64_t num = 1'000'000;
  EXPECT_TRUE(builder.add(ListedRow{"a", "mine", num--}));
  for (std::size_t i = 1; i < kMostPassedOver; ++i) ASSERT_TRUE(builder.add(ListedRow{"x", "other", num--})) << i;
  EXPECT_FALSE(builder.add(ListedRow{"x", "other", num}));
  EXPECT_EQ(page.jobs.size(), 1U);
  EXPECT_EQ(page.next, num) << "the next page begins after the last row that was passed over";
}

TEST(PageBuilderTest, APageWithoutFilterTakesItsRowsAndOneMore) {
  const JobFilter filter{"ep"};
  const PageWindow window{1, 2};
  JobPage page;
  sql::PageBuilder builder(page, filter, window);
  EXPECT_EQ(builder.most(), 4U);
  for (std::uint64_t num = 9; num > 6; --num) EXPECT_TRUE(builder.add(ListedRow{"a", "k", num}));
  EXPECT_FALSE(builder.add(ListedRow{"a", "k", 6}));
  EXPECT_EQ(page.next, 7U);
}

}  // namespace
}  // namespace jobq
