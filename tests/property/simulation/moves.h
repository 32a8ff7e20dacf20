// The moves of a simulated schedule: each names an act, a node, and two numbers as its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace jobq::model {

/// The nodes of a simulation, and their storage. The threads of one node take turns by moves; the threads of several
/// nodes work while time passes.
enum class NodeSetup : std::uint8_t { oneOnMemory, oneOnDisk, several };

enum class Act : std::uint8_t {
  submit,
  submitAndWait,  // by a caller that waits for the job, mostly a job that runs at another node
  await,          // a caller begins to wait for the end of a recent job
  finish,         // a handler returns
  cancel,
  retry,
  ttl,
  advance,
  // One node.
  resume,  // the calls continue that wait for the end of a job
  turn,    // a turn of the dispatcher
  sweep,
  startWorker,  // a starting worker becomes ready, or its start fails
  endWorker,    // a stopping worker ends
  report,       // a worker's progress, chunk or log line
  remoteClaim,
  remoteAsk,
  remoteFinish,  // perhaps long after the loss of its job
  purge,
  stream,
  deliver,
  newLife,   // the node begins another life: the next sweep takes back the jobs of all running workers
  powerCut,  // the power goes at one of the next steps of the disk
  // Several nodes, and the stop also one node on a disk.
  stop,       // the process stops in order
  fault,      // a later call of the node to the storage has a fault
  cut,        // the network between the node and the storage is cut for a time
  outage,     // no node reaches the storage for a time
  pause,      // the process stands still for a time, perhaps with the clock of its host
  crash,      // the process dies
  start,      // the hosts without a process start one
  hostClock,  // the time of day of the host steps by an hour
};

struct Move {
  Act act{};
  std::uint32_t node = 0;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

std::string text(const Move& move);
std::vector<Move> randomMoves(std::uint64_t seed, std::size_t count, NodeSetup setup);

}  // namespace jobq::model
