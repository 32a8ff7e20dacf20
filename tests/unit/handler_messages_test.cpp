// Tests of the messages between jobq-worker and the processes of handlers (core/handler_process/handler_messages.h),
// and of the end of the socket in such a process (core/handler_process/parent_link.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <future>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/handler_process/handler_messages.h"
#include "core/handler_process/parent_link.h"
#include "jobq/file_descriptor.h"
#include "testkit/fake_job_context.h"
#include "testkit/wait_for.h"

namespace jobq::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Returns the messages of a stream that comes in pieces of `step` bytes.
std::vector<Message> readAll(std::string_view stream, std::size_t step) {
  MessageReader reader;
  std::vector<Message> messages;
  for (; !stream.empty(); stream.remove_prefix(std::min(step, stream.size()))) {
    reader.add(stream.substr(0, step));
    while (auto message = reader.next()) messages.push_back(*std::move(message));
  }
  return messages;
}

/// Returns the only message of the bytes.
Message only(std::string_view bytes) {
  const auto messages = readAll(bytes, bytes.size());
  EXPECT_EQ(messages.size(), 1U);
  return messages.at(0);
}

std::string sized(std::string_view body) {
  const std::size_t size = body.size();
  return std::string{static_cast<char>(size), static_cast<char>(size >> 8), '\0', '\0'} + std::string(body);
}

TEST(HandlerMessagesTest, AStreamInPiecesOfEachSize) {
  const std::string bytes("a\0\xff", 3);
  const std::string stream = encodeMessage(MessageKind::chunk, {bytes, ""}) + encodeMessage(MessageKind::noted) +
                             encodeMessage(MessageKind::progress, {std::string(1000, 'x')});
  for (std::size_t step = 1; step <= stream.size(); ++step) {
    const auto messages = readAll(stream, step);
    ASSERT_EQ(messages.size(), 3U) << step;
    EXPECT_EQ(messages[0].kind, MessageKind::chunk);
    EXPECT_THAT(messages[0].fields, ElementsAre(bytes, ""));
    EXPECT_EQ(messages[1].kind, MessageKind::noted);
    EXPECT_THAT(messages[1].fields, IsEmpty());
    EXPECT_THAT(messages[2].fields, ElementsAre(std::string(1000, 'x')));
  }
}

TEST(HandlerMessagesTest, ATornMessageIsNotAMessage) {
  const std::string stream = encodeMessage(MessageKind::refused, {"too warm"});
  for (std::size_t size = 0; size < stream.size(); ++size) {
    EXPECT_THAT(readAll(std::string_view(stream).substr(0, size), 1), IsEmpty()) << size;
  }
}

TEST(HandlerMessagesTest, MalformedMessages) {
  const std::string chunk(1, static_cast<char>(MessageKind::chunk));
  for (const std::string& bytes :
       {sized(""), std::string("\xff\xff\xff\xff", 4), std::string("\0\0\0\x03", 4), sized(std::string(1, '\0')),
        sized("\x7f"), sized(chunk + "x"), sized(chunk + std::string("\2\0\0\0x", 5)),
        sized(chunk + std::string("\xff\xff\xff\xffx", 5))}) {
    MessageReader reader;
    reader.add(bytes);
    EXPECT_THROW((void)reader.next(), MalformedMessage) << testing::PrintToString(bytes);
  }
  EXPECT_THROW((void)encodeMessage(MessageKind::chunk, {std::string(kMostMessageBytes, 'x')}), MalformedMessage);
  EXPECT_THROW((void)encodeMessage(MessageKind::chunk, std::vector<std::string_view>(kMostFields + 1)),
               MalformedMessage);
}

TEST(HandlerMessagesTest, RandomBytesAreRefusedOrWaitForMore) {
  std::mt19937 random(1);
  for (int round = 0; round < 4'000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 6);
    try {
      for (const Message& message : readAll(bytes, 1 + random() % 8)) {
        try {
          (void)readJob(message);
        } catch (const MalformedMessage&) {
          (void)readSetup(message);
        }
      }
    } catch (const MalformedMessage&) {
      continue;
    }
  }
}

TEST(HandlerMessagesTest, ASetup) {
  const HandlerSetup setup{
      "lua", {"ep", "w", {{"A", "1"}, {"B", ""}}, "reverse"}, "/scripts", "/plugins", {"a=b", "c=d=e"}};
  const HandlerSetup read = readSetup(only(writeSetup(setup)));
  EXPECT_EQ(read.plugin, "lua");
  EXPECT_EQ(read.env.endpoint, "ep");
  EXPECT_EQ(read.env.worker, "w");
  EXPECT_EQ(read.env.script, "reverse");
  EXPECT_EQ(read.env.variables, setup.env.variables);
  EXPECT_EQ(read.scripts, "/scripts");
  EXPECT_EQ(read.plugins, "/plugins");
  EXPECT_THAT(read.settings, ElementsAre("a=b", "c=d=e"));
  Message message = only(writeSetup(setup));
  message.fields.pop_back();
  EXPECT_THROW((void)readSetup(message), MalformedMessage) << "a variable without a value";
  message.fields[6] = "4";
  EXPECT_THROW((void)readSetup(message), MalformedMessage) << "fewer settings than announced";
}

TEST(HandlerMessagesTest, AJob) {
  const Instant now = fromEpochMillis(1'000);
  const testkit::FakeJobContext context({"a-u1", 2, fromEpochMillis(8'000), R"({"a":1})"});
  const HandedJob job = readJob(only(writeJob(R"({"n": 1.0})", context, now)));
  EXPECT_EQ(job.id, "a-u1");
  EXPECT_EQ(job.attempt, 2U);
  EXPECT_EQ(job.time, Millis(7'000)) << "a duration";
  EXPECT_EQ(job.s3Config, R"({"a":1})");
  EXPECT_EQ(job.input, R"({"n": 1.0})");
  EXPECT_FALSE(readJob(only(writeJob("{}", testkit::FakeJobContext(), now))).time);
  for (const char* number : {"x", "-1", "99999999999", "1 "}) {
    EXPECT_THROW((void)readJob({MessageKind::job, {"a-u1", number, "", "", "{}"}}), MalformedMessage) << number;
  }
  EXPECT_THROW((void)readJob({MessageKind::job, {"a-u1", "1", "", ""}}), MalformedMessage);
}

TEST(HandlerMessagesTest, Outcomes) {
  EXPECT_EQ(std::get<Completed>(readOutcome(only(writeOutcome(Completed{"[1.0]"})))).output, "[1.0]");
  const auto failed = std::get<Failed>(readOutcome(only(writeOutcome(Failed{"too warm", "{}"}))));
  EXPECT_EQ(failed.error, "too warm");
  EXPECT_EQ(failed.output, "{}");
  for (const char* output : {"", "{", "1,\"error\":2"}) {
    EXPECT_THROW((void)readOutcome(only(writeOutcome(Completed{output}))), MalformedMessage) << output;
  }
  EXPECT_THROW((void)readOutcome({MessageKind::failed, {"a", "{"}}), MalformedMessage);
  EXPECT_THROW((void)readOutcome({MessageKind::completed, {}}), MalformedMessage);
  EXPECT_THROW((void)readOutcome({MessageKind::ready, {"1"}}), MalformedMessage);
}

TEST(HandlerMessagesTest, Lines) {
  const LogLine line = readLine(only(writeLine(LogLevel::warning, "a\nb")));
  EXPECT_EQ(line.level, LogLevel::warning);
  EXPECT_EQ(line.text, "a\nb");
  for (const char* level : {"", "-1", "4", "1x"}) {
    EXPECT_THROW((void)readLine({MessageKind::line, {level, "a"}}), MalformedMessage) << level;
  }
}

/// The link of a handler's process; the test plays the worker.
class ParentLinkTest : public testing::Test {
 protected:
  ParentLinkTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    worker_ = FileDescriptor(ends[0]);
    handler_ = FileDescriptor(ends[1]);
    link_.emplace(handler_.number());
  }
  void send(std::string_view bytes) const {
    ASSERT_EQ(::send(worker_.number(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  std::optional<Message> awaitWork() {
    auto work = std::async(std::launch::async, [this] { return link_->awaitWork(); });
    return testkit::resultOf("work", work);
  }

  FileDescriptor worker_;
  FileDescriptor handler_;
  std::optional<ParentLink> link_;
};

TEST_F(ParentLinkTest, AStopFiresTheTokenOfThePrecedingJob) {
  for (const char* input : {"1", "2"}) {
    send(encodeMessage(MessageKind::job, {"id", "1", "", "", input}));
    EXPECT_EQ(readJob(awaitWork().value()).input, input);
    const std::stop_token stop = link_->stopToken();
    EXPECT_FALSE(stop.stop_requested());
    std::promise<void> stopped;
    const std::stop_callback note(stop, [&stopped] { stopped.set_value(); });
    send(encodeMessage(MessageKind::stop));
    auto isStopped = stopped.get_future();
    testkit::resultOf("the stop", isStopped);
  }
}

TEST_F(ParentLinkTest, AnswersComeInOrder) {
  for (const MessageKind kind : {MessageKind::noted, MessageKind::refused}) {
    send(encodeMessage(kind));
    auto answer = std::async(std::launch::async, [this] { return link_->awaitAnswer(); });
    EXPECT_EQ(testkit::resultOf("the answer", answer).kind, kind);
  }
}

TEST_F(ParentLinkTest, AClosedSocketEndsTheWork) {
  auto work = std::async(std::launch::async, [this] { return link_->awaitWork(); });
  worker_.close();
  EXPECT_FALSE(testkit::resultOf("the end", work).has_value());
}

}  // namespace
}  // namespace jobq::worker
