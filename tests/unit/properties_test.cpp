// Tests of the format of settings files: comments, quotes, references, and mistakes with their lines.
#include "core/config/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.h"
#include "jobq/error.h"
#include "testkit/temporary_folder.h"

namespace {

using namespace jobq;
using testing::HasSubstr;
using Overrides = std::vector<std::pair<std::string, std::string>>;

class PropertiesTest : public testing::Test {
 protected:
  Properties read(const std::string& text, const Overrides& overrides = {}) {
    std::ofstream(file_, std::ios::binary) << text;
    Mistakes mistakes(places_);
    Properties properties = readProperties(file_, overrides, mistakes);
    mistakes.throwAny();
    return properties;
  }
  /// Returns the value of the one setting `a` with `text` after the `=`.
  std::string valueOf(const std::string& text) { return read("a =" + text + "\n").at("a").value; }

  /// Returns the refusal with the file's name as FILE, or an empty text without one.
  template <class Act>
  std::string refusalOf(Act&& act) {
    try {
      act();
    } catch (const ConfigError& error) {
      std::string text = error.what();
      for (std::size_t at = text.find(file_.string()); at != std::string::npos; at = text.find(file_.string())) {
        text.replace(at, file_.string().size(), "FILE");
      }
      return text;
    }
    return "";
  }
  std::string refusal(const std::string& text) {
    return refusalOf([&] { (void)read(text); });
  }
  /// Returns the refusal of a whole configuration.
  std::string configRefusal(const std::string& text, const Overrides& overrides = {}) {
    std::ofstream(file_, std::ios::binary) << text;
    return refusalOf([&] { (void)loadConfig(file_, overrides); });
  }

  const testkit::TemporaryFolder dir_;
  const std::filesystem::path file_ = dir_ / "jobq.properties";
  const SettingPlaces places_{file_.string()};
};

TEST_F(PropertiesTest, NoCharacterEscapesTheNext) {
  const Properties read = this->read("a = p\\ass\nb = C:\\tmp\\new\nc = ends\\\nd = here\ne = \\u0041 \\\\ \\# \\\"\n");
  EXPECT_EQ(read.at("a").value, "p\\ass");
  EXPECT_EQ(read.at("b").value, "C:\\tmp\\new");
  EXPECT_EQ(read.at("c").value, "ends\\");
  EXPECT_EQ(read.at("d").value, "here") << "a backslash at the end of a line joins no lines";
  EXPECT_EQ(read.at("e").value, "\\u0041 \\\\ \\# \\\"");
}

TEST_F(PropertiesTest, ABlankAndASharpBeginAComment) {
  EXPECT_EQ(valueOf(" 8000 # the port"), "8000");
  EXPECT_EQ(valueOf(" 8000\t# the port # of the server"), "8000");
  EXPECT_EQ(valueOf(" color#1 c# #x"), "color#1 c#");
  EXPECT_EQ(valueOf("#1"), "#1") << "no blank is before the sharp";
  EXPECT_EQ(read("# a = 1\n  #b = 2\n\n \t\na = 3\n").size(), 1U);
  EXPECT_EQ(refusal("a = # nothing"),
            "FILE:1: a has a comment and no value: quote a value that begins with #, or write \"\"");
}

TEST_F(PropertiesTest, QuotesKeepBlanksAndSharps) {
  EXPECT_EQ(valueOf(" \"  a # b\\\"  # a comment"), "  a # b\\");
  EXPECT_EQ(valueOf(" 'say \"hi\" # now' "), "say \"hi\" # now");
  EXPECT_EQ(valueOf("\"#\""), "#");
  EXPECT_EQ(valueOf("\"\""), "");
  EXPECT_EQ(valueOf(" {\"a\": \"b\"}"), "{\"a\": \"b\"}") << "a quote inside a value belongs to the value";
  EXPECT_EQ(refusal("a = \"open"),
            "FILE:1: a begins with \" and has no closing quote: close it, or write the value in ' if the quote is a "
            "part of it");
  EXPECT_EQ(refusal("a = 'b' c"), "FILE:1: a has text after its closing quote: write a value with ' in \"");
  EXPECT_THAT(refusal("a = 'secret'#"), HasSubstr("text after its closing quote"));
}

TEST_F(PropertiesTest, LinesHaveNumbersAndAnyEnd) {
  const Properties read = this->read(
      "\xEF\xBB\xBF"
      "a = 1\r\n\r\n# c\nb:2\r\nc=\n d = x = y : z",
      {{"b", " \"3\" # "}});
  EXPECT_EQ(read.at("a").value, "1") << "a byte order mark is not a part of the key";
  EXPECT_EQ(read.at("a").line, 1U);
  EXPECT_EQ(read.at("b").value, " \"3\" # ") << "an override is taken literally";
  EXPECT_EQ(read.at("b").line, 0U);
  EXPECT_EQ(read.at("c").value, "");
  EXPECT_EQ(read.at("d").value, "x = y : z");
  EXPECT_EQ(read.at("d").line, 6U);
}

TEST_F(PropertiesTest, ReferencesInsertOtherValues) {
  const Properties read =
      this->read("a = ${b}/x${c}\nb = /${c}${none}${\nc = \"1 # 2\"\nd = ${b\n", {{"c", "3"}, {"e", "${a}"}});
  EXPECT_EQ(read.at("a").value, "/3${none}${/x3") << "a reference to no setting stays";
  EXPECT_EQ(read.at("d").value, "${b");
  EXPECT_EQ(read.at("e").value, read.at("a").value);
  EXPECT_THAT(refusal("a = ${b}\nb = ${a}\n"), HasSubstr("a refers to itself"));
}

TEST_F(PropertiesTest, ReferencesHaveBounds) {
  std::string doubling = "k0 = 0123456789abcdef\n";
  std::string chain = "k0 = x\n";
  for (int i = 1; i <= 200; ++i) {
    const std::string former = "${k" + std::to_string(i - 1) + "}";
    if (i <= 30) doubling += "k" + std::to_string(i) + " = " + former + former + "\n";
    chain += "k" + std::to_string(i) + " = " + former + "\n";
  }
  EXPECT_THAT(refusal(doubling), HasSubstr("is larger than 16 MB with its references"));
  // A reference without an end is text, which counts too.
  const std::string half = "k0 = " + std::string(7U << 20, 'x') + "\na = ${k0}" + std::string(4U << 20, 'y') + "${\n";
  EXPECT_THAT(refusal(half + "b = ${a}${a}\n"), HasSubstr("a is larger than 16 MB with its references"));
  EXPECT_THAT(refusal("a = ${k200}\n" + chain), HasSubstr("has too long a chain of references"));
}

TEST_F(PropertiesTest, ABinaryOrTooLargeFileIsRefused) {
  EXPECT_THAT(refusal(std::string("\xFF\xFE"
                                  "a\0=\0"
                                  "1\0",
                                  8)),
              HasSubstr("save the file as UTF-8"));
  EXPECT_THAT(refusal(std::string((16U << 20) + 1, '\n')), HasSubstr("is larger than 16 MB"));
}

TEST_F(PropertiesTest, AllMistakesAreNamedAtOnceWithTheLines) {
  const std::string refused = configRefusal(
      "server.port = 70000\n"
      "# a comment\n"
      "server.prot = 1\n"
      "endpoint.b.workersMax = many # how many\n"
      "no setting\n"
      "endpoint.a b.image = plugin/echo\n"
      "webhook.secret = \"abc\n"
      "server.port = 1\n"
      "storage = memory\n",
      {{"server.drain", "3"}});
  EXPECT_EQ(refused,
            "--set: server.drain = 3 is not a duration from 0ms to 1h, like 500ms 5s 10m 24h 7d\n"
            "FILE:1: server.port = 70000 is not a whole number from 0 to 65535\n"
            "FILE:3: server.prot is not a setting; the nearest one is server.port\n"
            "FILE:4: endpoint.b.image is missing: name a handler, such as plugin/echo\n"
            "FILE:4: endpoint.b.workersMax = many is not a whole number from 0 to 10000\n"
            "FILE:5: the line is not of the form key = value\n"
            "FILE:6: endpoint.a b.image: an endpoint's id consists of A-Z a-z 0-9 _ -\n"
            "FILE:7: webhook.secret begins with \" and has no closing quote: close it, or write the value in ' if the "
            "quote is a part of it\n"
            "FILE:8: server.port appears twice in the file, first in line 1: remove one line");
}

TEST_F(PropertiesTest, AFileOfMistakesIsNotNamedWhole) {
  std::string text;
  for (int i = 0; i < 1'000; ++i) text += "wrong" + std::to_string(i) + " = 1\n";
  const std::string refused = configRefusal(text);
  EXPECT_EQ(std::count(refused.begin(), refused.end(), '\n'), 50);
  EXPECT_THAT(refused, HasSubstr("\nthere are more mistakes: mend these first"));
}

TEST(SettingPlaces, ASentenceHasThePlaceOfTheSetting) {
  SettingPlaces places("f");
  places.add("storage.mysql.host", 3);
  places.add("endpoint.a.image", 7);
  places.add("server.port", 0);
  EXPECT_EQ(places.placed("storage.mysql.host: no such host"), "f:3: storage.mysql.host: no such host");
  EXPECT_EQ(places.placed("endpoint.a.filters: x\nserver.port = 1"),
            "f:7: endpoint.a.filters: x\n--set: server.port = 1");
  EXPECT_EQ(places.placed("the disk is full"), "the disk is full");
  EXPECT_EQ(places.placed("f:3: storage.mysql.host: x"), "f:3: storage.mysql.host: x") << "a place is written once";
}

}  // namespace
