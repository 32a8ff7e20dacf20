// Fixture of the tests of storage_mysql: a database of the test's server, and helpers for jobs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/queue_policy.h"
#include "jobq/storage.h"
#include "jobq/time.h"
#include "mariadb_server.h"
#include "open_mysql.h"
#include "plugins/storage_mysql/connection/connection.h"
#include "testkit/manual_clock.h"
#include "testkit/recording_log.h"
#include "testkit/temporary_folder.h"
#include "testkit/thrown_text.h"
#include "testkit/wait_for.h"

namespace jobq::testkit {

class ArrivalOrder final : public QueuePolicy {
 public:
  std::string group(const JobSpec&) const override { return {}; }
  std::int64_t rank(const JobSpec&, Instant, const GroupState&) const override { return 0; }
};

class MysqlTest : public testing::Test {
 protected:
  MariadbServer& server() { return MariadbServer::shared(); }
  std::string database() { return databaseOf(folder_); }
  std::unique_ptr<Storage> open() { return openMysql(clock_, log_, settingsFor(server(), database())); }

  /// Opens the storage with the settings. Returns the message of the refusal, or an empty text after success.
  std::string refusal(const Settings& settings) {
    return thrownText<Error>([&] { return openMysql(clock_, log_, settings); });
  }

  static JobSpec spec(const JobId& id) {
    JobSpec job;
    job.id = id;
    job.endpoint = "ep";
    job.input = "{\"n\":1.0}";
    return job;
  }

  /// Makes the call again until an answer comes, as callers of repeatable operations do.
  template <class Call>
  static auto untilAnswered(Call&& call) {
    for (const WaitDeadline deadline("an answer of the storage", kWorkDeadline);;) {
      try {
        return call();
      } catch (const StorageError&) {
        deadline.pause();
      }
    }
  }

  ManualClock clock_;
  RecordingLog log_;
  ArrivalOrder policy_;
  const TemporaryFolder folder_;
};

}  // namespace jobq::testkit
