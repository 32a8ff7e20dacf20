// The moves of a schedule for several nodes: each names an act, a node, and two numbers as its arguments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace jobq::model {

enum class NodeAct : std::uint8_t {
  submit,
  submitAndWait,  // the caller waits, mostly for a job that runs at another node
  await,          // a caller begins to wait for a job
  finish,         // a handler returns
  cancel,
  retry,
  ttl,
  advance,
  fault,     // a later call of the node to the storage has a fault
  cut,       // the network between the node and the storage is cut for a time
  outage,    // no node reaches the storage for a time
  pause,     // the process stands still for a time, perhaps with the clock of its host
  crash,     // the process dies
  stop,      // the process stops in order
  start,     // the hosts without a process start one
  hostClock  // the time of day of the host steps by an hour
};

struct NodeMove {
  NodeAct act{};
  std::uint32_t node = 0;
  std::uint32_t a = 0;
  std::uint32_t b = 0;
};

std::string text(const NodeMove& move);
std::vector<NodeMove> randomNodeMoves(std::uint64_t seed, std::size_t count);

}  // namespace jobq::model
