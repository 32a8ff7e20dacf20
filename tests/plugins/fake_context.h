// A job without a server: keeps what a handler reports, and is stopped by hand.
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jobq/job.h"
#include "jobq/job_handler.h"
#include "jobq/log.h"
#include "jobq/mutex.h"
#include "jobq/time.h"

namespace jobq::test {

/// The test and the handler's thread may use it at once.
class FakeContext final : public JobContext {
 public:
  FakeContext() = default;
  explicit FakeContext(std::string s3Config) : s3Config_(std::move(s3Config)) {}

  const JobId& id() const override { return id_; }
  std::uint32_t attempt() const override { return 1; }
  std::stop_token stopToken() const override { return stop_.get_token(); }
  Instant deadline() const override { return Instant::max(); }
  std::string_view s3Config() const override { return s3Config_; }

  void emit(std::string_view chunk, std::string_view = {}) override { keep(chunks_, chunk); }
  void progress(std::string_view json) override { keep(progress_, json); }
  void log(LogLevel, std::string_view line) override { keep(lines_, line); }

  void stop() { stop_.request_stop(); }
  std::vector<std::string> chunks() const { return copyOf(chunks_); }
  std::vector<std::string> progressReports() const { return copyOf(progress_); }
  std::vector<std::string> lines() const { return copyOf(lines_); }

 private:
  using Texts = std::vector<std::string>;

  void keep(Texts& texts, std::string_view text) {
    Lock lock(mutex_);
    texts.emplace_back(text);
  }
  Texts copyOf(const Texts& texts) const {
    Lock lock(mutex_);
    return texts;
  }

  const JobId id_ = "11111111-2222-3333-4444-555555555555-u1";
  const std::string s3Config_;
  std::stop_source stop_;
  mutable Mutex mutex_;
  Texts chunks_;  // these three guarded by mutex_, through keep() and copyOf()
  Texts progress_;
  Texts lines_;
};

}  // namespace jobq::test
