// Tests of records with repeated changes (core/base/repeated_records.h).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <variant>

#include "core/base/repeated_records.h"
#include "jobq/error.h"
#include "jobq/record_store.h"
#include "tests/fault/faulty_storage.h"
#include "unit_storage.h"

namespace jobq {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

class RepeatedRecordsTest : public testing::Test {
 protected:
  static Record named(const std::string& name) { return {"template", "t1", name, "{}", 0, {}}; }
  std::uint64_t create() { return std::get<Stored>(records_.create(named("alpha"))).version; }
  void loseAnswers(const std::string& operation, fault::CallFault how = fault::CallFault::done) {
    storage_.faults.failCall(operation, 1, how);
  }

  test::UnitStorage storage_;
  RepeatedRecords records_{storage_->records()};
};

TEST_F(RepeatedRecordsTest, AChangeWithALostAnswerIsDoneOnce) {
  loseAnswers("records.create");
  const std::uint64_t created = create();
  loseAnswers("records.update");
  const UpdateResult updated = records_.update(named("beta"), created);
  ASSERT_TRUE(std::holds_alternative<Stored>(updated));
  EXPECT_EQ(records_.find("template", "t1")->version, std::get<Stored>(updated).version);
  EXPECT_THAT(records_.changedSince("template", created).changed, SizeIs(1));
  loseAnswers("records.remove");
  EXPECT_TRUE(records_.remove("template", "t1"));
  EXPECT_THAT(records_.list("template"), IsEmpty());
  EXPECT_THAT(storage_.faults.failed(), ElementsAre("records.create", "records.update", "records.remove"));
}

TEST_F(RepeatedRecordsTest, EachChangeHasASeparateId) {
  const std::uint64_t created = create();
  EXPECT_TRUE(std::holds_alternative<NameTaken>(records_.create(named("alpha")))) << "a second change, not the first";
  ASSERT_TRUE(std::holds_alternative<Stored>(records_.update(named("alpha"), created)));
  EXPECT_TRUE(std::holds_alternative<Conflict>(records_.update(named("alpha"), created)));
  RepeatedRecords ofAnotherNode(storage_->records());
  EXPECT_TRUE(std::holds_alternative<NameTaken>(ofAnotherNode.create(named("alpha"))));
}

TEST_F(RepeatedRecordsTest, TheOutcomeIsUnknownIfNoCallIsAnswered) {
  loseAnswers("records.create", fault::CallFault::unanswered);
  EXPECT_THROW((void)create(), OutcomeUnknown);
  EXPECT_THAT(storage_.faults.failed(), SizeIs(3)) << "the call, and two repetitions";
}

TEST_F(RepeatedRecordsTest, AnAbsentRecordIsNotRemoved) {
  EXPECT_FALSE(records_.remove("template", "none"));
  storage_.faults.failNext("records.remove");
  EXPECT_THROW((void)records_.remove("template", "none"), StorageError);
  EXPECT_THAT(storage_.faults.failed(), SizeIs(1)) << "a failed call is not repeated";
}

}  // namespace
}  // namespace jobq
