// Tests of the typed reader of JSON objects: every type with its bounds, absent fields, and the sentence of each fault.
#include "jobq/fields.h"
#include "testkit/thrown_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace jobq;
using testing::ElementsAre;
using testing::IsEmpty;

enum class Fit { inside, cover };

std::string faultOf(const std::function<void()>& read) { return testkit::thrownText<FieldError>(read); }

TEST(Fields, ReadsEveryType) {
  const std::string input = R"({"text":"a\n","whole":-7,"number":2.5e1,"flag":true,"fit":"cover","list":[1,"b"],)"
                            R"("texts":["x","y"],"object":{"inner":1}})";
  const Fields fields(input);
  EXPECT_EQ(fields.text("text"), "a\n");
  EXPECT_EQ(fields.requiredText("text", 2, 2), "a\n");
  EXPECT_EQ(fields.integer("whole", -7, 0), -7);
  EXPECT_EQ(fields.requiredInteger("whole", -8, -7), -7);
  EXPECT_EQ(fields.number("number", 0, 25), 25.0);
  EXPECT_EQ(fields.requiredNumber("number", 25, 30), 25.0);
  EXPECT_EQ(fields.flag("flag"), true);
  EXPECT_EQ(fields.choice<Fit>("fit", {{"inside", Fit::inside}, {"cover", Fit::cover}}), Fit::cover);
  EXPECT_EQ(fields.list("list", "things", 2).at(1).raw, "\"b\"");
  EXPECT_THAT(fields.texts("texts", 2), ElementsAre("x", "y"));
  EXPECT_EQ(fields.requiredObject("object").integer("inner", 1, 1), 1);
  EXPECT_EQ(fields.object("object")->members().size(), 1U);
  EXPECT_EQ(fields.value("object")->raw, R"({"inner":1})");
  EXPECT_TRUE(fields.has("flag"));
}

TEST(Fields, AnAbsentFieldIsNoValue) {
  const Fields fields("{}");
  EXPECT_FALSE(fields.has("a"));
  EXPECT_FALSE(fields.text("a"));
  EXPECT_FALSE(fields.integer("a", 0, 1));
  EXPECT_FALSE(fields.number("a", 0, 1));
  EXPECT_FALSE(fields.flag("a"));
  EXPECT_FALSE(fields.choice<Fit>("a", {{"inside", Fit::inside}}));
  EXPECT_THAT(fields.list("a", "things", 0), IsEmpty());
  EXPECT_THAT(fields.texts("a", 0), IsEmpty());
  EXPECT_FALSE(fields.object("a"));
}

TEST(Fields, AFaultNamesTheFieldAndTheRemedy) {
  const std::string input = R"({"t":"abc","e":"","n":1.5,"big":1e999,"s":"1","l":["a",1],"z":null})";
  const Fields fields(input);
  const std::pair<std::function<void()>, const char*> kCases[] = {
      {[&] { (void)fields.text("n"); }, "input.n must be a string"},
      {[&] { (void)fields.text("z"); }, "input.z must be a string"},
      {[&] { (void)fields.text("t", 0, 2); }, "input.t must be a string of 0 to 2 bytes"},
      {[&] { (void)fields.text("t", 4); }, "input.t must be a string of at least 4 bytes"},
      {[&] { (void)fields.requiredText("e"); }, "input.e must be a string that is not empty"},
      {[&] { (void)fields.requiredText("none", 1, 9); }, "input.none must be a string of 1 to 9 bytes"},
      {[&] { (void)fields.integer("n", 0, 9); }, "input.n must be a whole number from 0 to 9"},
      {[&] { (void)fields.integer("s", 0, 9); }, "input.s must be a whole number from 0 to 9"},
      {[&] { (void)fields.requiredInteger("none", -1, 9); }, "input.none must be a whole number from -1 to 9"},
      {[&] { (void)fields.number("n", 2, 3.5); }, "input.n must be a number from 2 to 3.5"},
      {[&] { (void)fields.number("big", 0, 1); }, "input.big must be a number from 0 to 1"},
      {[&] { (void)fields.requiredNumber("none", 0, 1); }, "input.none must be a number from 0 to 1"},
      {[&] { (void)fields.flag("s"); }, "input.s must be true or false"},
      {[&] {
         (void)fields.choice<Fit>("t", {{"inside", Fit::inside}, {"cover", Fit::cover}});
       },
       R"(input.t must be one of "inside", "cover")"},
      {[&] {
         (void)fields.choice<Fit>("n", {{"inside", Fit::inside}});
       },
       R"(input.n must be one of "inside")"},
      {[&] { (void)fields.list("t", "things", 9); }, "input.t must be an array of things"},
      {[&] { (void)fields.list("l", "things", 1); }, "input.l must have at most 1 things"},
      {[&] { (void)fields.texts("l", 9); }, "input.l must be an array of strings"},
      {[&] { (void)fields.object("t"); }, "input.t must be an object"},
      {[&] { (void)fields.requiredObject("none"); }, "input.none must be an object"},
      {[&] { fields.refuse("t", "shorter"); }, "input.t must be shorter"},
  };
  for (const auto& [read, sentence] : kCases) EXPECT_EQ(faultOf(read), sentence);
}

TEST(Fields, AnErrorHasAllParts) {
  try {
    (void)Fields("crop", R"({"x":-1})").integer("x", 0, 9);
    FAIL() << "the number was accepted";
  } catch (const JobFailed& failed) {
    const auto& error = dynamic_cast<const FieldError&>(failed);
    EXPECT_EQ(error.key(), "x");
    EXPECT_EQ(error.problem(), "must be a whole number from 0 to 9");
  }
}

TEST(Fields, RefusesUnknownKeysAndNamesTheNearest) {
  const std::string input = R"({"width":1,"heigth":2})";
  const Fields fields("input.crop", input);
  EXPECT_EQ(faultOf([&] {
              fields.allowOnly({"width", "height"});
            }),
            "input.crop has the unknown key \"heigth\"; the known keys are width, height; the nearest one is height");
  fields.allowOnly({"width", "heigth"});
  const std::string escaped = R"({"wi\u0064th":1})";
  Fields(escaped).allowOnly({"width"});
  const std::string longer = "{\"" + std::string(100'000, 'k') + "\":1}";
  EXPECT_LT(faultOf([&] { Fields(longer).allowOnly({"key"}); }).size(), 200U);
}

TEST(Fields, NestedObjectsHaveSeparateNames) {
  const std::string input = R"({"crop":{"size":{"w":"x"}}})";
  const Fields size = Fields(input).requiredObject("crop").requiredObject("size");
  EXPECT_EQ(faultOf([&] { (void)size.integer("w", 1, 2); }), "input.crop.size.w must be a whole number from 1 to 2");
}

TEST(Fields, RefusesNonObjectsAndTooLargeTexts) {
  for (const char* text : {"", "[1]", "1", "null", "{", "{}x"}) {
    EXPECT_EQ(faultOf([&] { const Fields fields(text); }), "input must be a JSON object") << text;
  }
  const std::string three = R"({"a":1,"b":2,"c":3})";
  EXPECT_EQ(faultOf([&] { const Fields fields("input", three, 2); }), "input must have at most 2 fields");
  EXPECT_EQ(Fields("input", three, 3).members().size(), 3U);
}

TEST(Fields, TheLastOfSeveralValuesCounts) {
  const std::string input = R"({"a":1,"a":2})";
  EXPECT_EQ(Fields(input).integer("a", 0, 9), 2);
}

TEST(Fields, ACompleteListOfKeysRefusesARepeatedKey) {
  const std::string input = R"({"a":1,"b":2,"a":2})";
  EXPECT_EQ(testkit::thrownText<FieldError>([&] {
              return Fields(input).allowOnly({"a", "b"});
            }),
            "input.a appears more than once: send it once");
}

TEST(Nearest, CountsEdits) {
  EXPECT_EQ(editDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(editDistance("", "abc"), 3U);
  EXPECT_EQ(editDistance("same", "same"), 0U);
}

TEST(Nearest, TakesTheFirstOfEquallyNearNames) {
  const std::vector<std::string> names{"image", "images", "format"};
  EXPECT_EQ(nearest("imagex", names), "image");
  EXPECT_EQ(nearest("fromat", names), "format");
  EXPECT_EQ(nearest("x", std::vector<std::string>()), "");
}

TEST(Nearest, PrefersSharedWords) {
  EXPECT_EQ(nearest("timeout", std::vector<std::string>{"ttl", "priority", "executionTimeout"}), "executionTimeout");
  EXPECT_EQ(nearest("timeout", std::vector<std::string>{"idleTimeout", "executionTimeoutMs"}), "executionTimeoutMs");
  EXPECT_EQ(nearest("image", std::vector<std::string>{"name", "env", "imageName"}), "imageName");
  const std::vector<std::string> workers{"workersMin", "workersMax", "maxAttempts"};
  EXPECT_EQ(nearest("max-workers", workers), "workersMax") << "the order of words does not count";
  EXPECT_EQ(nearest("workrsMin", workers), "workersMin") << "a slip of few letters comes first";
  EXPECT_EQ(nearest("WORKERSMAX", workers), "workersMax") << "upper and lower case are alike";
  const std::vector<std::string> settings{"server.tls.certificate", "server.host", "storage.wait"};
  EXPECT_EQ(nearest("tls.cert", settings), "server.tls.certificate") << "the beginning of a word is enough";
}

TEST(Nearest, NamesNoFarCandidate) {
  const std::vector<std::string> names{"server.host", "maxQueued", "ttl"};
  EXPECT_EQ(nearest("server.colour", names), "") << "the section alone says nothing";
  EXPECT_EQ(nearest("endpoint.echo.foo", std::vector<std::string>{"endpoint.echo.name"}), "");
  EXPECT_EQ(nearest("endpoint.echo.nane", std::vector<std::string>{"endpoint.echo.name"}), "endpoint.echo.name");
  EXPECT_EQ(nearest("webhook.wait", std::vector<std::string>{"storage.wait"}), "") << "the sections differ";
  EXPECT_EQ(nearest("maxColours", names), "") << "a short word says nothing";
  EXPECT_EQ(nearest("xyz", names), "");
  EXPECT_EQ(nearest("lua", std::vector<std::string>{"run"}), "") << "a third of the letters is too few";
  EXPECT_EQ(nearest("lvl", std::vector<std::string>{"level"}), "level");
  EXPECT_EQ(nearestHint("host", names), "; the nearest one is server.host");
  EXPECT_EQ(nearestHint("xyz", names), "");
  EXPECT_EQ(nearestHint("xyz", names, ": leave it out"), ": leave it out");
}

}  // namespace
