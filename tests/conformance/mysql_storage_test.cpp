// The storage mysql under the storage suite, also behind a connection that loses answers.
#include "open_mysql.h"
#include "testkit/lost_answers.h"
#include "testkit/storage_suite_all.h"

JOBQ_STORAGE_CONFORMANCE(Mysql, testing::Values(jobq::testkit::mysqlUnderTest(),
                                                withLostAnswers(jobq::testkit::mysqlUnderTest())));
