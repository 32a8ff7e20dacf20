// The owner of leases: one life of a node.
#pragma once

#include <cstdint>
#include <string>

namespace jobq {

/// One life of a node: from NodeStore::join() until the life ends (node_store.h). A job that is IN_PROGRESS names the
/// epoch of its holder, also while a remote worker runs the job.
struct Holder {
  std::string node;         ///< name of the node
  std::uint64_t epoch = 0;  ///< number of the life, unique in the storage; a later life has a greater number; never 0
  bool operator==(const Holder&) const = default;
};

}  // namespace jobq
