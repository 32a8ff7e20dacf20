// The parts of the SQLite storage around its writer, for tests of the interplay of the parts.
#pragma once

#include <filesystem>

#include "jobq/log.h"
#include "jobq/time.h"
#include "plugins/storage_sql/reports_under_way.h"
#include "plugins/storage_sqlite/bodies/body_files.h"
#include "plugins/storage_sqlite/bodies/claimed_inputs.h"
#include "plugins/storage_sqlite/connection.h"
#include "plugins/storage_sqlite/leases.h"
#include "plugins/storage_sqlite/nodes.h"
#include "plugins/storage_sqlite/reads/ended_jobs.h"
#include "plugins/storage_sqlite/reads/job_listing.h"
#include "plugins/storage_sqlite/reads/readers.h"
#include "plugins/storage_sqlite/removal_hold.h"
#include "plugins/storage_sqlite/writes/counters.h"
#include "plugins/storage_sqlite/writes/running_rows.h"
#include "plugins/storage_sqlite/writes/writer.h"
#include "testkit/plain_receiver_names.h"

namespace jobq::testkit {

/// The parts of the storage, built like the storage's own: a test can look inside. The schema has to exist.
struct OpenSqlite {
  OpenSqlite(const std::filesystem::path& file, Clock& clock, Log& log)
      : connection(file, sqlite::Connection::Access::readWrite),
        loaded(load({counters, running, ended, numbers}, connection)),
        bodies(connection, file),
        writer(connection, {counters, running, ended, numbers}, clock, log, 64UL << 20),
        readers(file, 2),
        inputs(bodies, readers, log),
        hold(clock),
        leases(writer, readers, {bodies, inputs}, {counters, running, ended, numbers}, clock, reports, hold),
        nodes(writer, readers, clock) {}

  static bool load(const sqlite::CommittedState& state, sqlite::Connection& connection) {
    static const PlainReceiverNames kPlain{};
    connection.setReceiverNames(kPlain);
    state.numbers.load(connection);
    state.counters.load(connection, state.running);
    return true;
  }

  sqlite::Connection connection;
  sqlite::Counters counters;
  sqlite::RunningRows running;
  sqlite::EndedJobs ended;
  sqlite::JobNumbers numbers;
  const bool loaded;
  sqlite::BodyFiles bodies;
  sqlite::Writer writer;
  sqlite::Readers readers;
  sqlite::ClaimedInputs inputs;
  sql::ReportsUnderWay reports;
  sqlite::RemovalHold hold;
  sqlite::Leases leases;
  sqlite::Nodes nodes;
};

}  // namespace jobq::testkit
