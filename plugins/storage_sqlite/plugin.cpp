// Plugin `storage_sqlite`: the default storage.
#include "jobq/abi.h"
#include "storage.h"

constexpr jobq::abi::Entry kEntries[] = {
    jobq::abi::entry<jobq::Storage, jobq::sqlite::SqliteStorage>("sqlite", "1.0.0")};
JOBQ_PLUGIN(kEntries)
