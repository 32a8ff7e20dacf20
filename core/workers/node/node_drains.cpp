#include "core/workers/node/node_drains.h"

#include "core/jobs/queue_signal.h"

namespace jobq {
namespace {

constexpr const char* kDrainKind = "nodeDrain";

}  // namespace

void NodeDrains::begin(const std::string& node) {
  (void)deps_.records.create({kDrainKind, node, "", "{}", 0, {}});  // the id is taken if the node drains already
}

void NodeDrains::end(const std::string& node) { deps_.records.remove(kDrainKind, node); }

void NodeDrains::refresh() {
  const Changes changes = deps_.records.changedSince(kDrainKind, seen_);
  seen_ = changes.version;
  if (changes.changed.empty() && changes.removed.empty()) return;
  for (const std::string& node : changes.removed) drained_.erase(node);
  for (const Record& record : changes.changed) drained_.insert(record.id);
  const bool wasDrained = deps_.node.isDrained();
  deps_.node.setDrained(drained_);
  if (deps_.node.isDrained() == wasDrained) return;
  deps_.log.write(LogLevel::information, wasDrained ? "node.drainEnded" : "node.drains",
                  wasDrained ? "the node claims jobs again"
                             : "the node claims no further jobs; `jobqctl node resume` or a restart ends that");
  deps_.queueSignal.notifyAll();
}

}  // namespace jobq
