// The items of a pattern, read and tested without a subject and without a Lua state.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "plugins/lua/sandbox/step_meter.h"
#include "plugins/lua/stdlib/pattern_reader.h"
#include "plugins/lua/stdlib/pattern_single.h"

namespace jobq::lua::test {
namespace {

using Item = PatternReader::Item;

class RefusingHost final : public MatchHost {
 public:
  void spend(std::uint64_t steps) override { spent += steps; }
  [[noreturn]] void refuse(const char* message) override { throw std::string(message); }

  std::uint64_t spent = 0;
};

struct Pattern {
  explicit Pattern(std::string_view pattern) : text(pattern), reader(host, meter, text) {}

  Single single() { return reader.readSingle(reader.begin()); }
  bool fits(char c) { return single().fits(meter, c); }
  std::string refusal() {
    try {
      (void)single();
    } catch (const std::string& message) {
      return message;
    }
    return {};
  }

  const std::string text;
  RefusingHost host;
  StepMeter meter{host};
  PatternReader reader;
};

Item kindOf(std::string_view pattern) {
  const Pattern read(pattern);
  return read.reader.itemAt(read.reader.begin());
}

TEST(PatternReader, KnowsItemsByTheirFirstCharacters) {
  EXPECT_EQ(kindOf("(a)"), Item::kOpen);
  EXPECT_EQ(kindOf("()"), Item::kPosition);
  EXPECT_EQ(kindOf(")"), Item::kClose);
  EXPECT_EQ(kindOf("$"), Item::kEnd);
  EXPECT_EQ(kindOf("%bxy"), Item::kBalance);
  EXPECT_EQ(kindOf("%f[a]"), Item::kFrontier);
  EXPECT_EQ(kindOf("%1"), Item::kReference);
  for (const char* pattern : {"a", ".", "%a", "[a]", "$a", "%"}) EXPECT_EQ(kindOf(pattern), Item::kSingle) << pattern;
}

TEST(PatternReader, ReadsOneItemAndChargesItsLength) {
  for (const char* item : {"a", ".", "%d", "[]]", "[^]a]", "[%]]", "[a-z%d]"}) {
    Pattern read(std::string(item) + "*x");
    EXPECT_EQ(read.single().end() - read.reader.begin(), static_cast<std::ptrdiff_t>(std::string_view(item).size()));
    read.meter.flush();
    EXPECT_EQ(read.host.spent, std::string_view(item).size()) << item;
  }
}

TEST(PatternReader, RefusesAMalformedItemDuringReading) {
  EXPECT_EQ(Pattern("%").refusal(), "malformed pattern (ends with '%')");
  EXPECT_EQ(Pattern("[a").refusal(), "malformed pattern (missing ']')");
  EXPECT_EQ(Pattern("[]").refusal(), "malformed pattern (missing ']')");
  Pattern pair("%bx");
  EXPECT_THROW((void)pair.reader.readPair(pair.reader.begin() + 2), std::string);
}

TEST(PatternSingle, TestsOneCharacter) {
  EXPECT_TRUE(Pattern(".").fits('\0'));
  EXPECT_TRUE(Pattern("%d").fits('7'));
  EXPECT_FALSE(Pattern("%D").fits('7'));
  EXPECT_TRUE(Pattern("%.").fits('.'));
  EXPECT_TRUE(Pattern("[a-c]").fits('b'));
  EXPECT_FALSE(Pattern("[^a-c]").fits('b'));
  EXPECT_TRUE(Pattern("[]]").fits(']'));
  EXPECT_FALSE(Pattern("a").fits('b'));
}

TEST(PatternSingle, RunsToTheFirstOtherCharacter) {
  const std::string subject = std::string(10'000, 'a') + "b";
  const char* const end = subject.data() + subject.size();
  for (const char* item : {"a", "%l", "[a]"}) {
    Pattern read(item);
    const std::ptrdiff_t length = read.single().run(read.meter, subject.data(), end) - subject.data();
    EXPECT_EQ(length, std::string_view(item) == "%l" ? 10'001 : 10'000) << item;
    EXPECT_GE(read.host.spent, 8'000U) << item;
  }
  Pattern any(".");
  EXPECT_EQ(any.single().run(any.meter, subject.data(), end), end);
}

}  // namespace
}  // namespace jobq::lua::test
