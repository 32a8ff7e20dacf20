// The judge's records: a storage may count its versions in its own way (`tests/property/record_model.h`).
#include "judge_ask.h"

namespace jobq::model {

CreateResult Judge::create(Record record) {
  kinds_.insert(record.kind);
  CreateResult said;
  return ask(
      "create of " + record.kind + "/" + record.id, [&] { return said = real_->records().create(record); },
      [&](StorageModel& model) { return model.records.asTold(model.records.create(record, model.now), said); });
}

UpdateResult Judge::update(Record record, std::uint64_t expectedVersion) {
  const std::string action = "update of " + record.kind + "/" + record.id + " from " + std::to_string(expectedVersion);
  UpdateResult said;
  return ask(
      action, [&] { return said = real_->records().update(record, expectedVersion); },
      [&](StorageModel& model) {
        const std::uint64_t expected = model.records.versions().change(expectedVersion);
        return model.records.asTold(model.records.update(record, expected, model.now), said);
      });
}

std::optional<Record> Judge::find(std::string_view kind, std::string_view id) {
  const std::string ofKind(kind);
  const std::string ofId(id);
  std::optional<Record> said;
  return ask(
      "find of " + ofKind + "/" + ofId, [&] { return said = real_->records().find(kind, id); },
      [&](StorageModel& model) { return model.records.asTold(model.records.find(ofKind, ofId), said); });
}

std::vector<Record> Judge::list(std::string_view kind) {
  const std::string ofKind(kind);
  std::vector<Record> said;
  return ask(
      "list of " + ofKind, [&] { return said = real_->records().list(kind); },
      [&](StorageModel& model) { return model.records.asTold(model.records.list(ofKind), said); });
}

bool Judge::remove(std::string_view kind, std::string_view id) {
  const std::string ofKind(kind);
  const std::string ofId(id);
  return ask(
      "remove of " + ofKind + "/" + ofId, [&] { return real_->records().remove(kind, id); },
      [&](StorageModel& model) { return model.records.remove(ofKind, ofId, model.now); });
}

Changes Judge::changedSince(std::string_view kind, std::uint64_t version) {
  const std::string ofKind(kind);
  Changes said;
  return ask(
      "changes of " + ofKind + " since " + std::to_string(version),
      [&] { return said = real_->records().changedSince(kind, version); },
      [&](StorageModel& model) {
        const std::uint64_t since = model.records.versions().moment(version);
        return model.records.asTold(model.records.changedSince(ofKind, since, model.now), said, ofKind, model.now);
      });
}

std::string Judge::differenceInRecords(StorageModel& model) {
  std::string found;
  const auto same = [&found](const std::string& what, const std::string& said, const std::string& right) {
    if (found.empty() && said != right) found = what + " is\n  " + said + "\ninstead of\n  " + right;
  };
  for (const std::string& kind : kinds_) {
    const std::vector<Record> listed = real_->records().list(kind);
    same("the list of " + kind, text(listed), text(model.records.asTold(model.records.list(kind), listed)));
    const Changes changes = real_->records().changedSince(kind, 0);
    same("what happened to " + kind, text(changes),
         text(model.records.asTold(model.records.changedSince(kind, 0, model.now), changes, kind, model.now)));
  }
  return found;
}

}  // namespace jobq::model
