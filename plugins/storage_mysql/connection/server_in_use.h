// The database server used by a node, and the generation of the node's connections.
//
// After a planned switch another server takes the writes, and the old server may go on to answer reads on open
// connections. A node must not read there any more: the old server has no job accepted since the switch. Therefore all
// connections of a node belong to one generation, which ends when
//  - the server or the network ends a connection for changes, or its server takes no writes any more,
//  - a new connection, or a beat, finds another server than before.
// The sockets of an ended generation are shut down, also during a call, and no call begins on such a connection. A
// change at the new server needs a new connection, which ends the generation of the old server before the change is
// sent: each later read of the node reaches the new server. A connection given up by the node, because an answer takes
// too long or memory lacks, ends no generation: a lock of a backup would cut every read otherwise.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "connection/open_sockets.h"
#include "jobq/log.h"
#include "jobq/mutex.h"

namespace jobq::mysql {

/// Any thread may call the methods.
class ServerInUse {
 public:
  /// `log` outlives the object, or is null for no log.
  explicit ServerInUse(Log* log = nullptr) : log_(log) {}
  ServerInUse(const ServerInUse&) = delete;
  ServerInUse& operator=(const ServerInUse&) = delete;

  /// Adds the sockets of a connector. The end of a generation shuts the sockets down.
  void add(std::shared_ptr<OpenSockets> sockets);

  /// Returns the number of the current generation.
  std::uint64_t generation() const noexcept { return generation_; }

  /// Returns whether a server has been reached before.
  bool isKnown() const;

  /// Returns whether `name` is the server in use. The first server is.
  bool isInUse(const std::string& name);

  /// Makes `name` the server in use, and ends the current generation if another server was.
  void moveTo(const std::string& name);

  /// Ends `generation` if `generation` is current.
  void end(std::uint64_t generation);

 private:
  void endCurrent() JOBQ_REQUIRES(mutex_);

  Log* const log_;
  std::atomic<std::uint64_t> generation_ = 1;
  mutable Mutex mutex_;
  std::string name_ JOBQ_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<OpenSockets>> sockets_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::mysql
