// Pages of lists of jobs. `Columns` is the current row of a query: CurrentRow of a storage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "jobq/job.h"
#include "jobq/job_store.h"
#include "storage_sql/rows.h"

namespace jobq::sql {

/// Fills a page with rows, the newest first. A row has the columns of jobOf(), the number of the job, the first bytes
/// of the error, and the API key.
class PageBuilder {
 public:
  /// All arguments outlive the object.
  PageBuilder(JobPage& page, const JobFilter& filter, const PageWindow& window)
      : page_(page), filter_(filter), window_(window) {}

  /// Greatest number of rows that the builder takes for the page, with the rows of `window.offset`.
  std::size_t most() const {
    const bool passesOver = !filter_.apiKeyId.empty() || !filter_.idPrefix.empty();
    return window_.offset + window_.limit + 1 + (passesOver ? kMostPassedOver : 0);
  }

  /// Adds the row, unless the row does not match or belongs to an earlier page. Returns false if the page is full: the
  /// row begins the next page.
  template <class Columns>
  bool add(const Columns& row) {
    if (skipped_ < window_.offset) {
      ++skipped_;
      return true;
    }
    Job job = jobOf(row);
    job.apiKeyId = row.text(kJobColumns + 2);
    const std::uint64_t num = row.count(kJobColumns);
    if (!filter_.matches(job.id, job.apiKeyId)) return passOver(num);
    if (page_.jobs.size() == window_.limit) {
      page_.next = last_;
      return false;
    }
    job.error = listedError(row.text(kJobColumns + 1));
    page_.jobs.push_back(std::move(job));
    last_ = num;
    return true;
  }

  /// Adds the rows of the query. Returns false if the page is full.
  template <class Query>
  bool addAll(Query& query) {
    while (query.next()) {
      if (!add(query)) return false;
    }
    return true;
  }

 private:
  bool passOver(std::uint64_t num) {
    last_ = num;
    if (++passedOver_ < kMostPassedOver) return true;
    page_.next = last_;
    return false;
  }

  JobPage& page_;
  const JobFilter& filter_;
  const PageWindow& window_;
  std::uint64_t last_ = 0;
  std::size_t skipped_ = 0;
  std::size_t passedOver_ = 0;
};

}  // namespace jobq::sql
