// Plugin `storage_mysql`: a storage shared by several nodes.
#include "jobq/abi.h"
#include "storage.h"

constexpr jobq::abi::Entry kEntries[] = {jobq::abi::entry<jobq::Storage, jobq::mysql::MysqlStorage>("mysql", "1.0.0")};
JOBQ_PLUGIN(kEntries)
