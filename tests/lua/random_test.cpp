// math.random: a reader of four numbers knows the generator's whole state (xoshiro256**) and with it every later
// number. Each job therefore begins with a fresh state.
#include <array>
#include <bit>
#include <sstream>

#include "lua_fixture.h"

namespace jobq::lua::test {
namespace {

using Number = std::uint64_t;

/// The generator of Lua 5.4, reconstructed from four successive numbers.
class Generator {
 public:
  explicit Generator(const std::array<Number, 4>& given) {
    std::array<Number, 4> s1{};
    for (std::size_t i = 0; i < given.size(); ++i) s1[i] = unscramble(given[i]);
    // Each step mixes the words with exclusive or, so s1 over four steps determines all words after the first step.
    const Number both02 = s1[1] ^ s1[0];
    const Number s2 = both02 ^ (s1[0] << 17);
    const Number s0 = s1[2] ^ s1[1] ^ s2;
    const Number s2Next = s2 ^ s0 ^ (s1[1] << 17);
    const Number s0Next = s1[3] ^ s1[2] ^ s2Next;
    state_ = {s0, s1[1], s2, s0Next ^ s0 ^ s1[1]};
    for (int i = 0; i < 3; ++i) (void)next();
  }

  Number next() {
    auto& [s0, s1, s2, s3] = state_;
    const Number number = std::rotl(s1 * 5, 7) * 9;
    const Number shifted = s1 << 17;
    s2 ^= s0;
    s3 ^= s1;
    s1 ^= s2;
    s0 ^= s3;
    s2 ^= shifted;
    s3 = std::rotl(s3, 45);
    return number;
  }

 private:
  static constexpr Number kInverseOf5 = 0xCCCCCCCCCCCCCCCD;
  static constexpr Number kInverseOf9 = 0x8E38E38E38E38E39;
  static Number unscramble(Number number) { return std::rotr(number * kInverseOf9, 7) * kInverseOf5; }

  std::array<Number, 4> state_{};
};

class RandomTest : public LuaTest {
 protected:
  RandomTest() {
    scripts.write("draw", R"(return function(input)
      -- Where the C stack ends, one of these calls comes as far as the seeding, and no further.
      local function dive() pcall(dive) pcall(math.random) end
      if input.dive then dive() end
      local numbers = json.array()
      for i = 1, input.count do numbers[i] = math.random(0) end
      return numbers
    end)");
  }

  std::vector<Number> draw(JobHandler& handler, const std::string& input) {
    FakeJobContext context;
    std::istringstream text(outcome(handler, input, context).substr(1));
    std::vector<Number> numbers;
    for (std::int64_t number = 0; text >> number; text.ignore()) numbers.push_back(static_cast<Number>(number));
    return numbers;
  }
};

TEST_F(RandomTest, FourNumbersTellAllThatFollowInOneJobAndNoneOfTheNext) {
  const auto factory = handlers();
  const auto handler = factory->make(envFor("draw"));
  for (const char* next : {R"({"count":1})", R"({"count":1,"dive":true})"}) {
    const auto numbers = draw(*handler, R"({"count":6})");
    ASSERT_EQ(numbers.size(), 6U);
    Generator known({numbers[0], numbers[1], numbers[2], numbers[3]});
    ASSERT_EQ(known.next(), numbers[4]) << "the test cannot predict the generator";
    ASSERT_EQ(known.next(), numbers[5]);
    const auto others = draw(*handler, next);
    ASSERT_EQ(others.size(), 1U);
    for (int i = 0; i < 1'000; ++i) ASSERT_NE(known.next(), others[0]) << next;
  }
}

}  // namespace
}  // namespace jobq::lua::test
