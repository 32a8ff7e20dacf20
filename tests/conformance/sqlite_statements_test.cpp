// The plan of every statement of the plugin is judged (query_plans.cpp), also of a statement that no test prepares.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "plugins/storage_sqlite/connection.h"
#include "query_plans.h"
#include "sqlite_fixture.h"
#include "testkit/plain_receiver_names.h"

namespace jobq::testkit {
namespace {

constexpr std::array<std::string_view, 6> kKeywords{"SELECT ", "INSERT ", "UPDATE ", "DELETE ", "REPLACE ", "WITH "};

/// Returns true for a statement that reads or writes rows. The other statements (PRAGMA, BEGIN, COMMIT and similar)
/// have no plan. The steps of the schema begin with a line feed and run once for each database.
bool hasPlan(std::string_view text) {
  return std::any_of(kKeywords.begin(), kKeywords.end(),
                     [text](std::string_view keyword) { return text.starts_with(keyword); });
}

/// Returns the statements in the plugin's library. The compiler has joined the parts of each literal, and each literal
/// ends with a null byte.
std::set<std::string> statementsOfThePlugin() {
  const std::string library = contentOf(JOBQ_PLUGIN_DIR "/libjobq_storage_sqlite.so");
  std::set<std::string> statements;
  for (std::size_t begin = 0; begin < library.size();) {
    const std::size_t end = std::min(library.find('\0', begin), library.size());
    const std::string_view text(library.data() + begin, end - begin);
    if (hasPlan(text)) statements.emplace(text);
    begin = end + 1;
  }
  return statements;
}

using SqliteStatements = SqliteTest;

TEST_F(SqliteStatements, AllStatementsOfThePluginAreJudged) {
  const std::set<std::string> statements = statementsOfThePlugin();
  open();
  storage_.reset();
  (void)test::extractJudgedStatements();
  const PlainReceiverNames names;
  sqlite::Connection connection(file(), sqlite::Connection::Access::readWrite);
  connection.setReceiverNames(names);
  for (const std::string& sql : statements) {
    try {
      (void)connection.query(sql.c_str());
    } catch (const StorageError& error) {
      ADD_FAILURE() << error.what() << ": " << sql;
    }
  }
  EXPECT_THAT(test::extractJudgedStatements(), testing::IsSupersetOf(statements));
}

// A statement prepared by the plugin but not found by the search would show an incomplete search.
TEST_F(SqliteStatements, PreparedByThePluginAreFoundInTheLibrary) {
  const std::set<std::string> statements = statementsOfThePlugin();
  (void)test::extractJudgedStatements();
  open();
  submit("a");
  const auto claimed = claim(1);
  ASSERT_EQ(claimed.size(), 1U);
  (void)storage_->leases().finish(claimed[0].lease, Completed{"7"});
  (void)storage_->leases().sweep(1);
  (void)find("a");
  (void)storage_->jobs().list({"ep", std::nullopt}, {});
  storage_.reset();
  std::size_t found = 0;
  for (const std::string& sql : test::extractJudgedStatements()) {
    if (!hasPlan(sql)) continue;
    ++found;
    EXPECT_TRUE(statements.contains(sql)) << sql;
  }
  EXPECT_GT(found, 20U) << "the statements of the plugin were not seen";
}

}  // namespace
}  // namespace jobq::testkit
