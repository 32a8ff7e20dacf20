// Random patterns on random subjects: the sandbox's functions give the same results and errors as the stock functions.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "twin_states.h"

namespace {

using jobq::lua::literal;
using jobq::lua::TwinStates;

class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  int below(int count) { return static_cast<int>(random_() % static_cast<unsigned>(count)); }
  const char* one(const std::vector<const char*>& of) { return of[static_cast<std::size_t>(below(int(of.size())))]; }

  std::string subject() {
    std::string text;
    for (int left = below(13); left > 0; --left) text += "aaabbcAB1 .%()-]^"[below(17)];
    if (below(8) == 0) text.insert(static_cast<std::size_t>(below(int(text.size()) + 1)), 1, '\0');
    return text;
  }

  std::string set() {
    std::string text = below(3) == 0 ? "[^" : "[";
    for (int left = 1 + below(3); left > 0; --left) {
      text += one({"a", "b", "a-c", "%a", "%D", "%%", "%]", "]", "-", "^", ".", "A-Z", " -%", "%s"});
    }
    return text + "]";
  }

  std::string single() {
    if (below(6) == 0) return set();
    return one({"a", "a", "b", "c", "1", ".", ".", "%a", "%d", "%w", "%u", "%s", "%p", "%A", "%W", "%.", "%%", "-"});
  }

  // Well formed, or nearly.
  std::string pattern() {
    std::string text = below(6) == 0 ? "^" : "";
    int open = 0;
    for (int left = below(7); left > 0; --left) {
      const int kind = below(14);
      if (kind < 8) {
        text += single() + one({"", "", "*", "+", "-", "?"});
      } else if (kind < 10) {
        text += "(";
        ++open;
      } else if (kind == 10 && open > 0) {
        text += ")";
        --open;
      } else {
        text += one({"()", "%1", "%2", "%b()", "%bab", "%f[%w]", "%f[a]", "%f[^a]", "$", ")"});
      }
    }
    while (open-- > 0 && below(12) != 0) text += ")";
    return text + (below(6) == 0 ? "$" : "");
  }

  // Arbitrary characters.
  std::string rubbish() {
    std::string text;
    for (int left = below(9); left > 0; --left) {
      text +=
          one({"a", "b", ".", "%", "%", "[", "]", "^", "-", "*", "+", "?", "$", "(", ")", "%b", "%f", "%1", "%0", "a"});
    }
    if (below(10) == 0) text.push_back('\0');
    return text;
  }

  std::string replacement() {
    switch (below(6)) {
      case 0: return one({"saying", "some", "nothing", "{a = 'X', b = false, [1] = 'one', ['1'] = 1}", "42"});
      default: {
        std::string text;
        for (int left = below(4); left > 0; --left) text += one({"%0", "%1", "%1", "%2", "%%", "x", "yz", "%", "%a"});
        return literal(text);
      }
    }
  }

 private:
  std::mt19937 random_;
};

TEST(PatternProperty, OursAndTheStockOnesAgree) {
  TwinStates twins;
  int matches = 0;
  int errors = 0;
  for (unsigned seed = 1; seed <= 20'000 && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Writer writer(seed);
    const std::string pattern = literal(writer.below(4) == 0 ? writer.rubbish() : writer.pattern());
    const std::string texts = "(" + literal(writer.subject()) + ", " + pattern;
    const std::string init = ", " + std::to_string(writer.below(20) - 8) + ")";
    const std::string found = twins.answer("string.find" + texts + ")");
    matches += found.rfind("true integer", 0) == 0;
    errors += found.rfind("false", 0) == 0;
    twins.answer("string.find" + texts + init);
    twins.answer("string.match" + texts + init);
    twins.answer("all(string.gmatch" + texts + (writer.below(2) == 0 ? init : ")") + ")");
    twins.answer("string.gsub" + texts + ", " + writer.replacement() + ")");
    twins.answer("string.gsub" + texts + ", " + writer.replacement() + init);
    twins.answer("string.find" + texts + ", 1, true)");
  }
  EXPECT_GT(matches, 5000) << "most patterns have to match";
  EXPECT_GT(errors, 1000);
}

}  // namespace
