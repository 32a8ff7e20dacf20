// Tests of the listing of jobs by groups of writes, with and without a failure
// (plugins/storage_sqlite/reads/job_listing.h).
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "sqlite_writer_fixture.h"

namespace jobq::testkit {
namespace {

/// A storage with one unlisted job.
class UnlistedJobTest : public WriterTest {
 protected:
  void SetUp() override {
    WriterTest::SetUp();
    sqlite_.reset();
    open();
    submit("a");
    storage_.reset();
    sqlite_ = std::make_unique<OpenSqlite>(file(), clock_, log_);
    sqlite_->writer.write([&](sqlite::Step& step) {
      step.db.query("UPDATE job SET num = ?1, listed = 0 WHERE num = 1").bind(sqlite_->numbers.next()).run();
      return true;
    });
  }
  std::int64_t unlisted() { return ask(file(), "SELECT count(*) FROM job WHERE listed = 0"); }

  static void listAll(sqlite::Step& step) { step.listing.listAll(step.db); }
  static void fail(sqlite::Step&) { throw std::runtime_error("this write fails"); }
};

TEST_F(UnlistedJobTest, ARepeatedGroupListsAgain) {
  occupy(1);
  queue(listAll);
  queue(fail);
  release();
  EXPECT_THROW(awaitAll(), std::runtime_error);
  EXPECT_EQ(unlisted(), 0);
  EXPECT_EQ(sqlite_->numbers.listed(), 2);
}

TEST_F(UnlistedJobTest, AnIdIsLocatedFromItsWriteOn) {
  const auto located = [](const sqlite::LocatedId& id) { return id.unlisted.value_or(0); };
  std::vector<std::int64_t> seen;
  const auto look = [&](sqlite::Step& step) { seen.push_back(located(step.listing.locate("new"))); };
  occupy(1);
  queue([](sqlite::Step& step) {
    step.listing.add("new", 7);
    fail(step);
  });
  queue(look);
  queue([](sqlite::Step& step) { step.listing.add("new", 8); });
  queue(look);
  queue([](sqlite::Step& step) { step.listing.add("other", 9); });
  release();
  EXPECT_THROW(awaitAll(), std::runtime_error);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{0, 8})) << "the failed write leaves no entry";
  EXPECT_EQ(located(sqlite_->numbers.locate("new")), 8);
  EXPECT_EQ(located(sqlite_->numbers.locate("other")), 9);
  while (sqlite_->numbers.last() < 8) sqlite_->numbers.next();
  sqlite_->writer.write([](sqlite::Step& step) {
    listAll(step);
    return true;
  });
  EXPECT_EQ(located(sqlite_->numbers.locate("new")), 0) << "the index has the id now";
}

TEST_F(UnlistedJobTest, AFailedWriteListsNoJob) {
  occupy(1);
  queue([](sqlite::Step& step) {
    listAll(step);
    fail(step);
  });
  release();
  EXPECT_THROW(awaitAll(), std::runtime_error);
  EXPECT_EQ(unlisted(), 1);
  EXPECT_EQ(sqlite_->numbers.listed(), 1);
  sqlite_->writer.write([](sqlite::Step& step) {
    listAll(step);
    return true;
  });
  EXPECT_EQ(unlisted(), 0);
}

}  // namespace
}  // namespace jobq::testkit
