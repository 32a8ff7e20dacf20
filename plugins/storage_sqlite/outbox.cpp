// The bodies of owed deliveries, in rows and in files.
#include "outbox.h"

#include <exception>
#include <utility>

#include "statement.h"

namespace jobq::sqlite {
namespace {

/// Pause of a delivery whose body cannot be read for now, by a fault of its file or of this machine.
constexpr Millis kUnreadablePause{60'000};
constexpr Millis kMachinePause{1'000};

void readFile(const BodyFiles& files, const BodyFile& file, std::string& body) {
  if (!file.isFile()) return;
  auto bytes = files.read(file);
  if (!bytes) throw files.missingError(file);
  body = std::move(*bytes);
}

}  // namespace

void OutboxRows::readBodies(Connection& connection, Due& due) const {
  Query query = connection.query(
      "SELECT delivery.id, output, input, output_file, o.size, input_file, i.size FROM delivery "
      "LEFT JOIN delivery_body USING (num) LEFT JOIN body_file AS o ON o.id = output_file "
      "LEFT JOIN body_file AS i ON i.id = input_file WHERE num = ?1");
  if (!query.bind(due.num).next()) return;
  due.id = query.text(0);
  due.output = query.text(1);
  due.input = query.text(2);
  due.outputFile = bodyFileAt(query, 3);
  due.inputFile = bodyFileAt(query, 5);
}

void OutboxRows::readFiles(std::vector<Due>& due) const {
  for (Due& each : due) {
    try {
      readFile(files, each.outputFile, each.output);
      readFile(files, each.inputFile, each.input);
    } catch (const DamagedBody& error) {
      each.damage = error.what();
    } catch (const UnreadableBody&) {
      each.pause = kUnreadablePause;
    } catch (const std::exception&) {
      each.pause = kMachinePause;  // too few descriptors, or too little memory
    }
  }
}

bool OutboxRows::isReadable(Step& step, const Due& due, const Delivery& delivery) const {
  if (delivery.id != due.id) return false;
  if (due.pause > Millis(0)) {
    step.db.query("UPDATE delivery SET due_at = ?1 WHERE num = ?2").bind(step.now + due.pause, due.num).run();
    return false;
  }
  if (due.damage.empty()) return true;
  step.db.query(kSettle).bind(static_cast<int>(DeliveryState::abandoned), step.now, due.num).run();
  addAttempt(step, due.num, {{}, 0, Millis(0), due.damage, {}});
  countSettled(step, delivery.job.endpoint, 1);
  dropOldest(step, delivery.job.endpoint, 1);
  return false;
}

}  // namespace jobq::sqlite
