// The lives of the nodes of a storage at a moment (`jobq/node_store.h`).
#pragma once

#include <vector>

#include "jobq/node_store.h"
#include "jobq/time.h"

namespace jobq {

/// An answer of NodeStore::nodes().
struct NodeLives {
  Instant askedAt{};  ///< before the request, on the clock of the asking node
  std::vector<NodeInfo> nodes;
};

}  // namespace jobq
