// The nodes that an administrator lets drain. A draining node runs the claimed jobs to the end, claims no further jobs,
// and answers 503 to /readyz, until the drain is ended or the node starts again. The order is a record of the storage,
// because a call reaches any node: each node reads the records every second.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "core/workers/node/node_life.h"
#include "jobq/log.h"
#include "jobq/record_store.h"

namespace jobq {

class QueueSignal;

/// Any thread may call begin() and end(). A single thread at a time may call refresh().
class NodeDrains {
 public:
  /// All members outlive the object.
  struct Deps {
    RecordStore& records;
    NodeLife& node;
    QueueSignal& queueSignal;
    Log& log;
  };
  explicit NodeDrains(const Deps& deps) : deps_(deps) {}

  /// Orders the drain of the node, which follows within about a second. Repeated orders change nothing. Throws
  /// StorageError.
  void begin(const std::string& node);

  /// Ends the drain of the node. Throws StorageError.
  void end(const std::string& node);

  /// Reads the current orders, and informs NodeLife. Throws StorageError.
  void refresh();

 private:
  const Deps deps_;
  std::set<std::string> drained_;  // names as read by the last refresh()
  std::uint64_t seen_ = 0;         // version of the records in drained_
};

}  // namespace jobq
