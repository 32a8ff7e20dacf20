// Exchange of news about remote workers between the nodes of a shared storage, once a second: each node writes a
// record, and reads the records of the other nodes. The exchange lets a worker call any node, as through a load
// balancer. A node writes the record only when the text has changed, and a node without remote endpoints neither reads
// nor writes.
//
// When a node dies, the other nodes inherit the node's jobs in the hands of workers: the storage gives the jobs back to
// the queue, and the workers are told to stop the jobs. The storage is asked about each job first, because the worker
// may have delivered, or may have the job again under a later attempt.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/base/periodic.h"
#include "core/base/service.h"
#include "core/workers/remote/inherited_jobs.h"
#include "core/workers/remote/remote_elsewhere.h"
#include "core/workers/remote/remote_news.h"
#include "core/workers/remote/remote_news_access.h"
#include "core/workers/remote/remote_workers.h"
#include "jobq/job.h"
#include "jobq/log.h"
#include "jobq/record_store.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq {

class NodeLife;

/// Owner of the thread `remote-news`. On a storage for a single process the object does nothing.
class RemoteExchange final : public Service, private PeriodicTask {
 public:
  /// All members outlive the object.
  struct Deps {
    Storage& storage;
    RecordStore& records;
    const NodeLife& node;
    RemoteWorkers& remote;
    Clock& clock;
    Log& log;
  };
  explicit RemoteExchange(const Deps& deps);
  ~RemoteExchange() override { periodic_.stop(); }

  /// Starts the thread. Called after the begin of the life of the node.
  void start() override;
  /// Ends the thread, and removes the record of this node, unless the record names jobs that workers may still run.
  void stop() override;

  /// Reads and writes the news. Throws StorageError. Called by the thread every second, and by tests.
  void run() override;

 private:
  /// The news of another node, as last read.
  struct Known {
    NodeNews news;
    Instant since{};      // when news of the life were first read here
    bool isAlive = true;  // by the last list of lives
    Instant deadSince{};
  };
  void readRecords();
  void checkLives();
  void askStorage();
  void askInherited();
  void publishNews();

  const Deps deps_;
  const bool isShared_;
  RemoteNewsAccess remote_;
  // All members below are used by a single thread at a time.
  std::map<std::string, Known> others_;
  InheritedJobs inherited_;    // jobs of nodes that have died
  std::uint64_t seen_ = 0;     // version of the records in others_
  std::uint64_t version_ = 0;  // version of the own record; 0 if there is no record
  std::string published_;
  bool namesJobs_ = false;  // the own record does
  Periodic periodic_;
};

}  // namespace jobq
