// Numbers of jobs by endpoint and state, and of owed webhooks by endpoint, kept in memory, so no read counts rows. The
// numbers change after the commit of the change has succeeded, never before.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "connection.h"
#include "jobq/job.h"
#include "jobq/lease_store.h"
#include "jobq/mutex.h"
#include "storage_sql/tally.h"
#include "writes/running_rows.h"

namespace jobq::sqlite {

/// Changes of the numbers of an endpoint.
struct TallyChange : sql::Tally {
  bool forgotten = false;  // the endpoint was forgotten before these changes
};

/// Changes of the counters by a step or a group of steps. Not thread-safe.
class CounterChanges : public sql::TallyChanges<TallyChange> {
 public:
  /// Notes that the endpoint is deleted: its totals start again from 0.
  void forget(const EndpointId& endpoint);

  void clear() noexcept { endpoints_.clear(); }

  /// Writes the changes of the totals, in the open transaction. The row of an endpoint counts the outcomes of jobs that
  /// are not in the file any more, or not in that state: load() adds the ended jobs of the file. So the end of a job
  /// changes no such row. Throws StorageError.
  void persist(Connection& connection) const;

 private:
  friend class Counters;
};

/// The counters of all endpoints. Any thread may call the methods.
class Counters {
 public:
  /// Counts the content of the file, once, when the storage is opened, and loads `running`. Throws StorageError.
  void load(Connection& connection, RunningRows& running);
  /// Makes the entries that apply() needs, before the commit. A new entry counts 0 until apply().
  void prepare(const CounterChanges& changes);
  /// Applies the changes of a group whose commit has succeeded, behind prepare(). Needs no memory: a commit cannot be
  /// undone.
  void apply(const CounterChanges& changes) noexcept;
  /// Returns the numbers of the endpoint, all 0 if unknown.
  sql::Tally of(std::string_view endpoint) const;
  /// Returns the endpoints with a number, in ascending order.
  std::vector<std::string> names() const;
  /// Returns the endpoints with queued jobs, in ascending order.
  std::vector<QueuedEndpoint> queuedEndpoints() const;
  /// Returns the endpoints that owe webhooks, in ascending order.
  std::vector<std::string> owing() const;

 private:
  mutable Mutex mutex_;
  std::map<EndpointId, sql::Tally, std::less<>> endpoints_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::sqlite
