// Tests of the text of event streams (core/http/api/event_text.h).
#include "core/http/api/event_text.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>

namespace jobq {
namespace {

TEST(EventTextTest, TheAcceptHeaderNamesTheMediaType) {
  for (const char* accepted : {"text/event-stream", " TEXT/Event-Stream ", "application/json, text/event-stream",
                               "*/*,text/event-stream;q=0.1", "text/event-stream;charset=utf-8",
                               "text/event-stream ; q=1", ",,text/event-stream", "text/event-stream;q="}) {
    EXPECT_TRUE(acceptsEventStream(accepted)) << accepted;
  }
  for (const char* other :
       {"", " ", ",", ";", "*/*", "text/*", "application/json", "text/event-stream;q=0", "text/event-stream; Q=0.000",
        "text/event-streams", "x-text/event-stream", "application/json;a=text/event-stream"}) {
    EXPECT_FALSE(acceptsEventStream(other)) << other;
  }
}

TEST(EventTextTest, AnEventHasNameIdAndData) {
  EventText text;
  EXPECT_TRUE(text.empty());
  text.add("status", "1-2", "{}");
  text.add("", "", "7");
  text.addComment("the job goes on");
  EXPECT_FALSE(text.empty());
  EXPECT_EQ(text.removePart(), "event: status\nid: 1-2\ndata: {}\n\ndata: 7\n\n: the job goes on\n\n");
  EXPECT_TRUE(text.empty());
  EXPECT_EQ(text.removePart(), "");
}

TEST(EventTextTest, EachLineEndBeginsADataLine) {
  EventText text;
  text.add("", "", "{\n\"a\"\r\n:\r1}\n");
  EXPECT_EQ(text.removePart(), "data: {\ndata: \"a\"\ndata: :\ndata: 1}\ndata: \n\n");
}

TEST(EventTextTest, PartsHaveAMegabyte) {
  constexpr std::size_t kMegabyte = 1UL << 20;
  EventText text;
  text.add("", "", std::string(2 * kMegabyte, 'x'));
  text.add("", "", std::string(kMegabyte, '\n'));
  std::string whole;
  std::size_t parts = 0;
  for (; !text.empty(); ++parts) {
    const std::string part = text.removePart();
    EXPECT_LE(part.size(), kMegabyte);
    EXPECT_FALSE(part.empty());
    whole += part;
  }
  std::string expected = "data: " + std::string(2 * kMegabyte, 'x') + "\n\ndata: ";
  for (std::size_t i = 0; i < kMegabyte; ++i) expected += "\ndata: ";
  EXPECT_TRUE(whole == expected + "\n\n");
  EXPECT_LT(parts, 12U);
}

}  // namespace
}  // namespace jobq
