// The answers of a storage as text: equal texts are equal answers, and a difference is readable.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "jobq/job.h"
#include "jobq/storage.h"
#include "jobq/time.h"

namespace jobq::model {

std::string text(bool answer);
std::string text(std::size_t count);
std::string text(ReportResult fenced);
std::string text(LeaseState state);
std::string text(Instant instant);
std::string text(const Job& job);
std::string text(const InsertResult& result);
std::string text(const IdempotencyRecord& answer);
std::string text(const CancelResult& result);
std::string text(const RequeueResult& result);
std::string text(const JobPage& page);
std::string text(const EndpointCounts& counts);
std::string text(const ClaimedJob& job);
std::string text(const ClaimResult& claim);
std::string text(const InsertedAndClaimed& done);
std::string text(const FinishResult& done);
std::string text(SweepResult swept);  ///< sorts sets; `more` is no answer but a way of working
std::string text(const Chunk& chunk);
std::string text(const ChunkPage& page);
std::string text(const LogLine& line);
std::string text(const LogPart& part);
std::string text(const Delivery& delivery);
std::string text(const DueHosts& page);
std::string text(const OwedDeliveries& owed);
std::string text(const AbandonResult& result);  ///< `more` is no answer but a way of working
std::string text(const Record& record);
std::string text(const CreateResult& result);
std::string text(const UpdateResult& result);
std::string text(Changes changes);  ///< sorts the removed records

/// The order is ignored: the calls of jobs ended by the same sweep become due at the same moment.
std::string text(const std::vector<Delivery>& deliveries);

template <class Answer>
std::string text(const std::vector<Answer>& answers) {
  std::string all;
  for (const Answer& answer : answers) all += "[" + text(answer) + "]";
  return all.empty() ? "[]" : all;
}

template <class Answer>
std::string text(const std::optional<Answer>& answer) {
  return answer ? text(*answer) : "nothing";
}

}  // namespace jobq::model
