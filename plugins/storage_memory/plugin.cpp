// Plugin `storage_memory`: a storage whose content ends with the process. Meant for tests, benchmarks and queues with
// jobs that may be lost.
#include "jobq/abi.h"
#include "memory_storage.h"

namespace {

using namespace jobq;

constexpr abi::Entry kEntries[] = {abi::entry<Storage, memory::MemoryStorage>("memory", "1.0.0")};

}  // namespace

JOBQ_PLUGIN(kEntries)
