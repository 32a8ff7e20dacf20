#include "reads/job_inputs.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "connection.h"
#include "jobq/transitions.h"

namespace jobq::sqlite {

std::optional<FoundInput> JobInputs::read(const JobKey& key, std::uint64_t mostBytes) {
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  BodyFile missing;
  for (;;) {
    BodyFile file;
    const LocatedId located = numbers_.locate(key.id);
    auto input = readers_.read([&](Connection& connection) -> std::optional<FoundInput> {
      Query query = connection.query(
          "SELECT length(body), iif(length(body) <= ?5, body, NULL), input_file, size FROM (SELECT "
          "ifnull(brief_input, input) AS body, input_file, size FROM job LEFT JOIN job_input USING (num) LEFT JOIN "
          "body_file ON body_file.id = input_file WHERE job.num = " JOBQ_NUM_OF_ID
          " AND endpoint = ?3 AND expires_at > ?4)");
      query.bind(located.id, located.unlisted, key.endpoint, clock_.now(), std::min(mostBytes, kLargest));
      if (!query.next()) return std::nullopt;
      file = bodyFileAt(query, 2);
      return FoundInput{query.count(0), query.text(1)};
    });
    if (!input || !file.isFile()) return input;
    if (file.size > mostBytes) return FoundInput{file.size, {}};
    if (auto bytes = files_.read(file)) return FoundInput{file.size, std::move(*bytes)};
    if (file.number == missing.number) throw files_.missingError(file);
    missing = file;
  }
}

// A job that cannot be retried needs no input.
LargeInput JobInputs::readForRetry(const JobKey& key) {
  BodyFile missing;
  for (;;) {
    const LocatedId located = numbers_.locate(key.id);
    const BodyFile file = readers_.read([&](Connection& connection) {
      Query query = connection.query(
          "SELECT input_file, size, state FROM job JOIN job_input USING (num) "
          "JOIN body_file ON body_file.id = input_file WHERE job.num = " JOBQ_NUM_OF_ID " AND endpoint = ?3");
      const bool isRead =
          query.bind(located.id, located.unlisted, key.endpoint).next() && next(query.state(2), Trigger::retry);
      return isRead ? bodyFileAt(query, 0) : BodyFile{};
    });
    if (!file.isFile()) return {};
    if (auto bytes = files_.read(file)) return {file, std::move(*bytes)};
    if (file.number == missing.number) throw files_.missingError(file);
    missing = file;
  }
}

}  // namespace jobq::sqlite
