// The whole conformance suite of storages; storage_suite.h has an example.
#pragma once

#include <string>

#include "testkit/storage_suite.h"
#include "testkit/storage_suite_bodies.h"
#include "testkit/storage_suite_bounds.h"
#include "testkit/storage_suite_chunks.h"
#include "testkit/storage_suite_counts.h"
#include "testkit/storage_suite_deliveries.h"
#include "testkit/storage_suite_expiry.h"
#include "testkit/storage_suite_finish_all.h"
#include "testkit/storage_suite_finish_and_claim.h"
#include "testkit/storage_suite_finish_unsynced.h"
#include "testkit/storage_suite_groups.h"
#include "testkit/storage_suite_idempotency.h"
#include "testkit/storage_suite_insert_and_claim.h"
#include "testkit/storage_suite_insert_later.h"
#include "testkit/storage_suite_insert_run.h"
#include "testkit/storage_suite_jobs.h"
#include "testkit/storage_suite_leases.h"
#include "testkit/storage_suite_listing.h"
#include "testkit/storage_suite_lost_claims.h"
#include "testkit/storage_suite_lost_workers.h"
#include "testkit/storage_suite_nodes.h"
#include "testkit/storage_suite_outbox.h"
#include "testkit/storage_suite_owed.h"
#include "testkit/storage_suite_planned.h"
#include "testkit/storage_suite_queue_position.h"
#include "testkit/storage_suite_races.h"
#include "testkit/storage_suite_record_changes.h"
#include "testkit/storage_suite_record_races.h"
#include "testkit/storage_suite_records.h"
#include "testkit/storage_suite_repeated_calls.h"
#include "testkit/storage_suite_repeated_records.h"
#include "testkit/storage_suite_repeated_streams.h"
#include "testkit/storage_suite_restart.h"
#include "testkit/storage_suite_states.h"
#include "testkit/storage_suite_sweep.h"

/// Runs the suite against storages: `JOBQ_STORAGE_CONFORMANCE(Mine, testing::Values(...))`, once, at namespace scope.
#define JOBQ_STORAGE_CONFORMANCE(prefix, storages)                                                                   \
  namespace jobq::testkit {                                                                                          \
  inline std::string nameOfStorage(const testing::TestParamInfo<StorageUnderTest>& info) { return info.param.name; } \
  INSTANTIATE_TEST_SUITE_P(prefix, StorageSuite, storages, nameOfStorage);                                           \
  INSTANTIATE_TEST_SUITE_P(prefix, SharedSuite, storages, nameOfStorage);                                            \
  INSTANTIATE_TEST_SUITE_P(prefix, FinishAllSuite, storages, nameOfStorage);                                         \
  INSTANTIATE_TEST_SUITE_P(prefix, FinishAndClaimSuite, storages, nameOfStorage);                                    \
  INSTANTIATE_TEST_SUITE_P(prefix, FinishUnsyncedSuite, storages, nameOfStorage);                                    \
  INSTANTIATE_TEST_SUITE_P(prefix, InsertAndClaimSuite, storages, nameOfStorage);                                    \
  INSTANTIATE_TEST_SUITE_P(prefix, InsertLaterSuite, storages, nameOfStorage);                                       \
  INSTANTIATE_TEST_SUITE_P(prefix, InsertRunSuite, storages, nameOfStorage);                                         \
  INSTANTIATE_TEST_SUITE_P(prefix, StateSuite, storages, nameOfStorage);                                             \
  INSTANTIATE_TEST_SUITE_P(prefix, GroupSuite, storages, nameOfStorage);                                             \
  INSTANTIATE_TEST_SUITE_P(prefix, LostWorkerSuite, storages, nameOfStorage);                                        \
  INSTANTIATE_TEST_SUITE_P(prefix, OutboxSuite, storages, nameOfStorage);                                            \
  INSTANTIATE_TEST_SUITE_P(prefix, OwedSuite, storages, nameOfStorage);                                              \
  INSTANTIATE_TEST_SUITE_P(prefix, RestartSuite, storages, nameOfStorage);                                           \
  INSTANTIATE_TEST_SUITE_P(prefix, RepeatedCalls, storages, nameOfStorage);                                          \
  INSTANTIATE_TEST_SUITE_P(prefix, RepeatedStreamCalls, storages, nameOfStorage);                                    \
  }                                                                                                                  \
  static_assert(true)
