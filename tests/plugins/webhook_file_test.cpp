// Tests of the transport `file`: the form of a line, the URLs that name a file, and faulty disks and folders.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <set>
#include <sstream>

#include "jobq/json.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"
#include "webhook_fixture.h"
#include "webhook_syncs.h"

namespace jobq::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class WebhookFile : public testing::Test {
 protected:
  WebhookFile() { transport_ = loadTransport("file", {}, data_, false); }

  static WebhookCall callTo(const std::string& name, const std::string& body = "{}") {
    return WebhookCall{"file:///" + name, {{"webhook-id", "a.1"}}, body};
  }
  /// Delivers the call. Returns the reason of the failure, or an empty string after a delivery.
  std::string failure(const WebhookCall& call) {
    const DeliveryResult result = transport_->deliver(call, {});
    const auto* failed = std::get_if<DeliveryFailed>(&result);
    return failed == nullptr ? "" : failed->reason;
  }
  std::filesystem::path file(const std::string& name) const { return data_ / "webhooks" / name; }
  static std::string contentOf(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static mode_t modeOf(const std::filesystem::path& path) {
    struct stat now {};
    EXPECT_EQ(::stat(path.c_str(), &now), 0) << path;
    return now.st_mode & 07777;
  }
  std::string refusalOf(const std::string& dir) {
    return testkit::thrownText<ConfigError>([&] { return loadTransport("file", {{"dir", dir}}, data_, false); });
  }

  const testkit::TemporaryFolder data_;
  std::unique_ptr<WebhookTransport> transport_;
};

/// Limits the length of files, like a disk that becomes full in the middle of a write.
class ShortDisk {
 public:
  explicit ShortDisk(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~ShortDisk() { setrlimit(RLIMIT_FSIZE, &before_); }
  ShortDisk(const ShortDisk&) = delete;
  ShortDisk& operator=(const ShortDisk&) = delete;

 private:
  rlimit before_{};
};

TEST_F(WebhookFile, WritesACallAsALineAndLeavesTheBodyUnchanged) {
  WebhookCall call = callTo("a-B_9.jsonl", R"({"z":1.0,"a":-0,"n":12345678901234567890123,"s":"\u00e4\/\n"})");
  call.headers = {{"webhook-id", "j.1"}, {"webhook-signature", "v1,a\"b"}};
  EXPECT_EQ(failure(call), "");
  EXPECT_EQ(failure(callTo("a-B_9.jsonl")), "");
  EXPECT_EQ(contentOf(file("a-B_9.jsonl")),
            R"({"url":"file:///a-B_9.jsonl","headers":{"webhook-id":"j.1","webhook-signature":"v1,a\"b"},"body":)" +
                call.body + "}\n" + R"({"url":"file:///a-B_9.jsonl","headers":{"webhook-id":"a.1"},"body":{}})" + "\n");
}

TEST_F(WebhookFile, ALineStaysALine) {
  EXPECT_EQ(failure(callTo("a", "{\n  \"x\": [1,\r\n 2]\n}")), "");
  const std::string content = contentOf(file("a"));
  EXPECT_THAT(content, HasSubstr("\"body\":{   \"x\": [1,   2] }}\n"));
  EXPECT_EQ(std::count(content.begin(), content.end(), '\n'), 1);
}

TEST_F(WebhookFile, OnlyItsOwnerMayRead) {
  const mode_t before = ::umask(0);
  transport_ = loadTransport("file", {{"dir", "hooks"}}, data_, false);
  EXPECT_EQ(failure(callTo("a")), "");
  ::umask(before);
  EXPECT_EQ(modeOf(data_ / "hooks"), 0700U);
  EXPECT_EQ(modeOf(data_ / "hooks" / "a"), 0600U);
}

TEST_F(WebhookFile, AUrlOnlyNamesAFile) {
  const std::string longest(128, 'x');
  for (const std::string& name : {std::string("a"), std::string("-"), std::string("_.."), longest}) {
    EXPECT_EQ(failure(callTo(name)), "") << name;
  }
  const std::string nul("a\0b", 3);
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), std::string(".hidden"), std::string("a/b"),
        std::string("/a"), std::string("../a"), std::string("..%2fa"), std::string("%61"), std::string("a?b"),
        std::string("a#b"), std::string("a b"), std::string("a\n"), std::string("\xc3\xa4"), nul, std::string("a\\b"),
        longest + "x"}) {
    EXPECT_THAT(failure(callTo(name)), StartsWith("the URL is not file:///NAME")) << name;
  }
  for (const char* url : {"file://localhost/a", "file://host/a", "file:a", "file:/a", "file://a", "http:///a",
                          "FILE:///a", "file:////a", "///a"}) {
    EXPECT_THAT(failure({url, {}, "{}"}), StartsWith("the URL is not file:///NAME")) << url;
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(data_ / "webhooks"), {}), 4);
}

TEST_F(WebhookFile, AReportedLineIsSynced) {
  const int before = syncs();
  EXPECT_EQ(failure(callTo("a")), "");
  EXPECT_EQ(syncs(), before + 2);  // a new file and its folder
  EXPECT_EQ(failure(callTo("a")), "");
  EXPECT_EQ(syncs(), before + 3);
  {
    const FailingSyncs failing;
    EXPECT_EQ(failure(callTo("a")), "the file cannot be written: Input/output error");
  }
  EXPECT_EQ(failure(callTo("a")), "");
}

TEST_F(WebhookFile, LinesOfManyWritersAreWhole) {
  constexpr int kThreads = 32;
  constexpr int kCalls = 20;
  std::vector<std::future<void>> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.push_back(std::async(std::launch::async, [this, thread] {
      for (int call = 0; call < kCalls; ++call) {
        const std::string body = "{\"n\":" + std::to_string(thread * kCalls + call) + ",\"x\":\"" +
                                 std::string(static_cast<std::size_t>(thread * 2000), 'x') + "\"}";
        EXPECT_EQ(failure(callTo("all", body)), "");
      }
    }));
  }
  for (auto& thread : threads) testkit::resultOf("a writer", thread, testkit::kWorkDeadline);
  std::set<std::string> seen;
  std::istringstream lines(contentOf(file("all")));
  for (std::string line; std::getline(lines, line);) {
    EXPECT_TRUE(json::valid(line));
    const auto document = std::get<json::Document>(json::read(line));
    EXPECT_TRUE(seen.insert(std::string(document.find("body")->raw)).second);
  }
  EXPECT_EQ(seen.size(), static_cast<std::size_t>(kThreads * kCalls));
}

TEST_F(WebhookFile, AFullDiskLeavesNoPartOfALine) {
  EXPECT_EQ(failure(callTo("a")), "");
  const std::string before = contentOf(file("a"));
  {
    const ShortDisk disk(before.size() + 100);
    EXPECT_EQ(failure(callTo("a", "\"" + std::string(1000, 'x') + "\"")), "the file cannot be written: File too large");
    EXPECT_EQ(contentOf(file("a")), before);
  }
  EXPECT_EQ(failure(callTo("a")), "");
  EXPECT_EQ(contentOf(file("a")), before + before);
}

TEST_F(WebhookFile, AFullDiskSpoilsNoOtherWritersLine) {
  const ShortDisk disk(40'000);
  std::atomic<int> written{0};
  std::vector<std::future<void>> threads;
  for (int thread = 0; thread < 16; ++thread) {
    threads.push_back(std::async(std::launch::async, [&] {
      for (int call = 0; call < 50; ++call) {
        const std::size_t size = call % 2 == 0 ? 10 : 5000;
        if (failure(callTo("a", "\"" + std::string(size, 'x') + "\"")).empty()) ++written;
      }
    }));
  }
  for (auto& thread : threads) testkit::resultOf("a writer", thread, testkit::kWorkDeadline);
  int lines = 0;
  std::istringstream content(contentOf(file("a")));
  for (std::string line; std::getline(content, line); ++lines) EXPECT_TRUE(json::valid(line));
  EXPECT_EQ(lines, written);
  EXPECT_GT(lines, 0);
  EXPECT_LT(lines, 16 * 50);
}

TEST_F(WebhookFile, ALineCutOffByACrashDoesNotSpoilTheNext) {
  std::ofstream(file("a")) << "{\"url\":\"file:///a\",\"hea";
  EXPECT_EQ(failure(callTo("a")), "");
  EXPECT_EQ(failure(callTo("a")), "");
  const std::string line = R"({"url":"file:///a","headers":{"webhook-id":"a.1"},"body":{}})";
  EXPECT_EQ(contentOf(file("a")), "{\"url\":\"file:///a\",\"hea\n" + line + "\n" + line + "\n");
}

TEST_F(WebhookFile, WritesToOrdinaryFilesOnly) {
  std::ofstream(data_ / "secret") << "mine";
  std::filesystem::create_symlink(data_ / "secret", file("link"));
  std::filesystem::create_symlink(data_ / "new", file("dangling"));
  std::filesystem::create_directory(file("folder"));
  ASSERT_EQ(::mkfifo(file("pipe").c_str(), 0600), 0);
  EXPECT_EQ(failure(callTo("link")), "the file is a symbolic link, which is not followed");
  EXPECT_EQ(failure(callTo("dangling")), "the file is a symbolic link, which is not followed");
  EXPECT_EQ(failure(callTo("folder")), "the file is a folder");
  EXPECT_EQ(failure(callTo("pipe")), "the file is not a regular file");
  EXPECT_EQ(contentOf(data_ / "secret"), "mine");
  EXPECT_FALSE(std::filesystem::exists(data_ / "new"));
}

TEST_F(WebhookFile, ARemovedFolderIsMadeAgain) {
  EXPECT_EQ(failure(callTo("a")), "");
  std::filesystem::remove_all(data_ / "webhooks");
  EXPECT_EQ(failure(callTo("a")), "");
  EXPECT_EQ(modeOf(data_ / "webhooks"), 0700U);
  EXPECT_NE(contentOf(file("a")), "");
}

TEST_F(WebhookFile, TheFolderIsWhereTheAdminSays) {
  const std::filesystem::path elsewhere = data_ / "elsewhere";
  transport_ = loadTransport("file", {{"dir", elsewhere.string()}}, "/nowhere", false);
  EXPECT_EQ(failure(callTo("a")), "");
  EXPECT_NE(contentOf(elsewhere / "a"), "");
  ::chmod(elsewhere.c_str(), 0750);
  transport_ = loadTransport("file", {{"dir", elsewhere.string() + "/"}}, "/nowhere", false);
  EXPECT_EQ(failure(callTo("a")), "");
  EXPECT_EQ(modeOf(elsewhere), 0750U);  // the permissions of an existing folder are the admin's choice
}

TEST_F(WebhookFile, AFolderFailureStopsTheStart) {
  std::ofstream(data_ / "file") << "x";
  EXPECT_EQ(refusalOf("a/b"),
            "webhook.file.dir: the folder " + (data_ / "a/b").string() +
                " cannot be created (No such file or directory); name a folder whose parent exists and "
                "is writable");
  EXPECT_THAT(refusalOf("file"), HasSubstr("(Not a directory)"));
}

}  // namespace
}  // namespace jobq::test
