// Tests of storage copies for POST /v1/backup (core/http/api/management/backups.h).
#include "core/http/api/management/backups.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "copied_storage.h"
#include "testkit/temporary_folder.h"
#include "testkit/wait_for.h"
#include "unit_storage.h"

namespace jobq {
namespace {

namespace fs = std::filesystem;

class BackupsTest : public testing::Test {
 protected:
  using File = std::shared_ptr<const BodyFile>;

  static std::string contentOf(const File& file) {
    std::string text(file->size(), '\0');
    EXPECT_EQ(::read(file->descriptor(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    return text;
  }
  bool isEmpty() const { return fs::is_empty(folder_.path()); }

  test::UnitStorage memory_;
  test::CopiedStorage storage_{*memory_};
  const testkit::TemporaryFolder folder_;
  Backups backups_{storage_, folder_};
};

TEST_F(BackupsTest, ACopyHasNoNameAndIsGoneWithTheOwner) {
  Backups::MakeResult result = backups_.make({});
  ASSERT_TRUE(std::holds_alternative<File>(result));
  EXPECT_EQ(contentOf(std::get<File>(result)), "content");
  EXPECT_TRUE(isEmpty());
}

TEST_F(BackupsTest, ASecondCopyIsRefusedUntilTheFirstWasSent) {
  Backups::MakeResult first = backups_.make({});
  EXPECT_TRUE(std::holds_alternative<Backups::Busy>(backups_.make({})));
  first = Backups::Busy{};
  EXPECT_TRUE(std::holds_alternative<File>(backups_.make({})));
}

TEST_F(BackupsTest, ACrashedServersCopyIsReplaced) {
  std::ofstream(folder_.path() / "backup.tmp") << "half";
  std::ofstream(folder_.path() / "backup.tmp-journal") << "half";
  EXPECT_TRUE(std::holds_alternative<File>(backups_.make({})));
  EXPECT_TRUE(isEmpty());
  std::ofstream(folder_.path() / "backup.tmp") << "half";
  backups_.removeLeftover();
  EXPECT_TRUE(isEmpty());
}

TEST_F(BackupsTest, ALeavingClientEndsTheCopying) {
  storage_.endless = true;
  std::stop_source gone;
  std::thread client([&] { EXPECT_TRUE(std::holds_alternative<Backups::Stopped>(backups_.make(gone.get_token()))); });
  testkit::waitFor("the copying to begin", [&] { return storage_.begun > 0; });
  gone.request_stop();
  testkit::join("the client", client);
  storage_.endless = false;
  EXPECT_TRUE(std::holds_alternative<File>(backups_.make({}))) << "the next backup has the place";
}

TEST_F(BackupsTest, AShutdownEndsTheCopyingAndBeginsNoCopy) {
  storage_.endless = true;
  std::thread client([&] { EXPECT_TRUE(std::holds_alternative<Backups::Stopped>(backups_.make({}))); });
  testkit::waitFor("the copying to begin", [&] { return storage_.begun > 0; });
  backups_.stop();
  testkit::join("the client", client);
  EXPECT_TRUE(std::holds_alternative<Backups::Stopped>(backups_.make({})));
  EXPECT_TRUE(isEmpty());
}

TEST_F(BackupsTest, AFailureGivesThePlaceBack) {
  storage_.broken = true;
  EXPECT_THROW((void)backups_.make({}), StorageError);
  storage_.broken = false;
  EXPECT_TRUE(std::holds_alternative<File>(backups_.make({})));
}

TEST_F(BackupsTest, AnUnreadableCopyIsRemoved) {
  storage_.unreadable = true;
  EXPECT_THROW((void)backups_.make({}), StorageError);
  EXPECT_TRUE(isEmpty());
  storage_.unreadable = false;
  EXPECT_TRUE(std::holds_alternative<File>(backups_.make({})));
}

TEST_F(BackupsTest, ABackupOfAnUnsupportedStorageIsRefused) {
  Backups none(*memory_, folder_);
  EXPECT_TRUE(std::holds_alternative<Backups::Unsupported>(none.make({})));
  EXPECT_TRUE(isEmpty());
}

}  // namespace
}  // namespace jobq
