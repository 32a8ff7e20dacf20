// Records under judgement: a storage may count versions in any way (`tests/property/record_model.h`).
#include "judged_stores.h"

namespace jobq::model {

CreateResult JudgedRecords::create(Record record) {
  kinds_.insert(record.kind);
  CreateResult said;
  return compared_.askSynced(
      "create of " + record.kind + "/" + record.id, [&] { return said = compared_.real().records().create(record); },
      [&](StorageModel& model) { return model.records.asTold(model.records.create(record, model.state.now), said); });
}

UpdateResult JudgedRecords::update(Record record, std::uint64_t expectedVersion) {
  const std::string action = "update of " + record.kind + "/" + record.id + " from " + std::to_string(expectedVersion);
  UpdateResult said;
  return compared_.askSynced(
      action, [&] { return said = compared_.real().records().update(record, expectedVersion); },
      [&](StorageModel& model) {
        const std::uint64_t expected = model.records.versions().change(expectedVersion);
        return model.records.asTold(model.records.update(record, expected, model.state.now), said);
      });
}

std::optional<Record> JudgedRecords::find(std::string_view kind, std::string_view id) {
  const std::string ofKind(kind);
  const std::string ofId(id);
  std::optional<Record> said;
  return compared_.ask(
      "find of " + ofKind + "/" + ofId, [&] { return said = compared_.real().records().find(kind, id); },
      [&](StorageModel& model) { return model.records.asTold(model.records.find(ofKind, ofId), said); });
}

std::vector<Record> JudgedRecords::list(std::string_view kind) {
  const std::string ofKind(kind);
  std::vector<Record> said;
  return compared_.ask(
      "list of " + ofKind, [&] { return said = compared_.real().records().list(kind); },
      [&](StorageModel& model) { return model.records.asTold(model.records.list(ofKind), said); });
}

bool JudgedRecords::remove(std::string_view kind, std::string_view id) {
  const std::string ofKind(kind);
  const std::string ofId(id);
  return compared_.askSynced(
      "remove of " + ofKind + "/" + ofId, [&] { return compared_.real().records().remove(kind, id); },
      [&](StorageModel& model) { return model.records.remove(ofKind, ofId, model.state.now); });
}

Changes JudgedRecords::changedSince(std::string_view kind, std::uint64_t version) {
  const std::string ofKind(kind);
  Changes said;
  return compared_.ask(
      "changes of " + ofKind + " since " + std::to_string(version),
      [&] { return said = compared_.real().records().changedSince(kind, version); },
      [&](StorageModel& model) {
        const std::uint64_t since = model.records.versions().moment(version);
        return model.records.asTold(model.records.changedSince(ofKind, since, model.state.now), said, ofKind,
                                    model.state.now);
      });
}

std::string JudgedRecords::difference(StorageModel& model) {
  std::string found;
  const auto same = [&found](const std::string& what, const std::string& said, const std::string& right) {
    if (found.empty() && said != right) found = what + " is\n  " + said + "\ninstead of\n  " + right;
  };
  for (const std::string& kind : kinds_) {
    const std::vector<Record> listed = compared_.real().records().list(kind);
    same("the list of " + kind, text(listed), text(model.records.asTold(model.records.list(kind), listed)));
    const Changes changes = compared_.real().records().changedSince(kind, 0);
    same("what happened to " + kind, text(changes),
         text(model.records.asTold(model.records.changedSince(kind, 0, model.state.now), changes, kind,
                                   model.state.now)));
  }
  return found;
}

}  // namespace jobq::model
