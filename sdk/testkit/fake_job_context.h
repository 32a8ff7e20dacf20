// A job without a server, for tests of handlers:
//
//     testkit::FakeJobContext context;
//     EXPECT_EQ(handler->run(R"({"n":1})", context), "2");
//     EXPECT_THAT(context.progressReports(), ElementsAre("50", "100"));
//
// A test of a stop runs the handler on a thread of its own and calls stop() after a report, or calls stop() from
// observe().
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/error.h"
#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/json.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::testkit {

/// The job that a handler finds in its context.
struct FakeJob {
  JobId id = "11111111-2222-3333-4444-555555555555-u1";
  std::uint32_t attempt = 1;
  Instant deadline = Instant::max();  ///< on the clock of the handler's plugin
  std::string s3Config{};             ///< JSON object text; empty for none
};

/// The context of one job. Any thread: a test may read and stop the job while the handler runs.
class FakeJobContext final : public JobContext {
 public:
  /// A call of emit(), progress() or log().
  struct Report {
    enum class Kind { chunk, progress, log } kind;
    std::string text;                        ///< the chunk, the progress or the line, byte for byte
    std::string metrics{};                   ///< only of a chunk; empty for none
    LogLevel level = LogLevel::information;  ///< only of a log line
  };

  explicit FakeJobContext(FakeJob job = {}) : job_(std::move(job)) {}

  const JobId& id() const override { return job_.id; }
  std::uint32_t attempt() const override { return job_.attempt; }
  std::stop_token stopToken() const override { return stop_.get_token(); }
  Instant deadline() const override { return job_.deadline; }
  std::string_view s3Config() const override { return job_.s3Config; }

  /// Records a chunk. Throws JobFailed, as the server does, if a text is not JSON. The server's limits on the size of
  /// chunks are not checked, and metrics need not be an object.
  void emit(std::string_view chunk, std::string_view metrics = {}) override {
    if (!json::valid(chunk)) throw JobFailed("the handler emitted a chunk that is not JSON");
    if (!metrics.empty() && !json::valid(metrics)) throw JobFailed("the handler emitted metrics that are not JSON");
    record({Report::Kind::chunk, std::string(chunk), std::string(metrics)});
  }

  /// Records a report of progress. Throws JobFailed, as the server does, if the text is not JSON.
  void progress(std::string_view json) override {
    if (!json::valid(json)) throw JobFailed("the handler reported a progress that is not JSON");
    record({Report::Kind::progress, std::string(json)});
  }

  /// Records a line. The server cuts a line at 8 KB; the fake keeps the whole line.
  void log(LogLevel level, std::string_view line) override {
    record({Report::Kind::log, std::string(line), {}, level});
  }

  /// Requests a stop, as the server does on cancel, execution timeout, expiry and shutdown. Later reports are still
  /// recorded, while the server drops them.
  void stop() { stop_.request_stop(); }

  /// Sets an observer of all further reports, called on the reporting thread after the report was recorded. Called
  /// before the handler runs.
  void observe(std::function<void(const Report&)> observer) { observer_ = std::move(observer); }

  /// Returns all reports so far, oldest first.
  std::vector<Report> reports() const {
    Lock lock(mutex_);
    return reports_;
  }

  /// The texts of one kind of report, oldest first.
  std::vector<std::string> chunks() const { return textsOf(Report::Kind::chunk); }
  std::vector<std::string> progressReports() const { return textsOf(Report::Kind::progress); }
  std::vector<std::string> lines() const { return textsOf(Report::Kind::log); }

 private:
  void record(const Report& report) {
    {
      Lock lock(mutex_);
      reports_.push_back(report);
    }
    if (observer_) observer_(report);
  }

  std::vector<std::string> textsOf(Report::Kind kind) const {
    Lock lock(mutex_);
    std::vector<std::string> texts;
    for (const Report& report : reports_) {
      if (report.kind == kind) texts.push_back(report.text);
    }
    return texts;
  }

  const FakeJob job_;
  std::function<void(const Report&)> observer_;
  std::stop_source stop_;
  mutable Mutex mutex_;
  std::vector<Report> reports_ JOBQ_GUARDED_BY(mutex_);
};

}  // namespace jobq::testkit
