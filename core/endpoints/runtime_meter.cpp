#include "core/endpoints/runtime_meter.h"

#include <utility>
#include <vector>

#include "jobq/json.h"
#include "jobq/json_writer.h"

namespace jobq {
namespace {

constexpr const char* kRuntimeRecords = "runtime";
constexpr Millis kMinute{60'000};

Millis millisOf(const std::string& body) {
  const auto document = json::read(body);
  const auto* object = std::get_if<json::Document>(&document);
  const auto value = object != nullptr ? object->find("ms") : std::nullopt;
  return Millis(value ? json::toInteger(*value).value_or(0) : 0);
}

Record recordOf(const std::string& id, Millis total) {
  std::string body = json::object([total](json::ObjectWriter& out) { out.member("ms", total.count()); });
  return {kRuntimeRecords, id, "", std::move(body), 0, {}};
}

}  // namespace

void RuntimeMeter::tick(const std::map<std::string, std::size_t>& workersOfTemplate) {
  const Instant now = clock_.now();
  if (last_ == Instant::min()) load();
  const Millis passed = last_ == Instant::min() ? Millis(0) : now - last_;
  last_ = now;
  std::vector<std::pair<std::string, Millis>> due;
  {
    Lock lock(mutex_);
    for (const auto& [id, workers] : workersOfTemplate) {
      Count& count = counts_[id];
      count.pending += passed * static_cast<std::int64_t>(workers);
      if (count.pending >= kMinute) due.emplace_back(id, count.pending);
    }
  }
  for (const auto& [id, amount] : due) store(id, amount);
}

void RuntimeMeter::load() {
  const std::vector<Record> records = records_.list(kRuntimeRecords);
  Lock lock(mutex_);
  for (const Record& record : records) counts_[record.id].stored = millisOf(record.body);
}

void RuntimeMeter::store(const std::string& id, Millis amount) {
  for (;;) {
    const auto record = records_.find(kRuntimeRecords, id);
    const Millis total = amount + (record ? millisOf(record->body) : Millis(0));
    const bool stored = record ? std::holds_alternative<Stored>(records_.update(recordOf(id, total), record->version))
                               : std::holds_alternative<Stored>(records_.create(recordOf(id, total)));
    if (!stored) continue;  // the other node was faster; both counts are added
    Lock lock(mutex_);
    counts_[id].stored = total;
    counts_[id].pending -= amount;
    return;
  }
}

std::int64_t RuntimeMeter::minutes(const std::string& id) const {
  Lock lock(mutex_);
  const auto found = counts_.find(id);
  return found == counts_.end() ? 0 : (found->second.stored + found->second.pending) / kMinute;
}

}  // namespace jobq
