// The whole conformance suite; see storage_suite.h.
#pragma once

#include "testkit/storage_suite_chunks.h"
#include "testkit/storage_suite_jobs.h"
#include "testkit/storage_suite_leases.h"
#include "testkit/storage_suite_outbox.h"
#include "testkit/storage_suite_races.h"
#include "testkit/storage_suite_records.h"
#include "testkit/storage_suite_states.h"
