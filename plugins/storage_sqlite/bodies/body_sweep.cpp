#include "bodies/body_sweep.h"

#include <exception>

#include "writes/step.h"

namespace jobq::sqlite {
namespace {

constexpr std::size_t kMostFiles = 64;

}  // namespace

bool BodySweep::begin() {
  const Lock lock(mutex_);
  if (pauses_ > 0 || runs_) return false;
  runs_ = true;
  return true;
}

void BodySweep::end() {
  const Lock lock(mutex_);
  runs_ = false;
  ended_.notifyAll();
}

void BodySweep::beginPause() {
  const Lock lock(mutex_);
  ++pauses_;
  while (runs_) ended_.wait(mutex_);
}

void BodySweep::endPause() {
  const Lock lock(mutex_);
  --pauses_;
}

std::vector<std::int64_t> BodySweep::findSome() {
  return readers_.read([](Connection& connection) {
    std::vector<std::int64_t> numbers;
    Query query =
        connection.query("SELECT id FROM body_file INDEXED BY body_file_unowned WHERE owners = 0 ORDER BY id LIMIT ?1");
    query.bind(kMostFiles);
    while (query.next()) numbers.push_back(query.integer(0));
    return numbers;
  });
}

bool BodySweep::isDue() {
  if (!begin()) return false;
  bool found = false;
  try {
    found = !findSome().empty();
  } catch (const std::exception&) {
    // As run() does, the next write reports the reason.
  }
  end();
  return found;
}

// A file without owners never gets one again: only a row that names the file could be copied.
bool BodySweep::run() {
  if (!begin()) return false;
  bool more = false;
  try {
    const std::vector<std::int64_t> numbers = findSome();
    if (!numbers.empty()) {
      writer_.write([&](Step& step) {
        for (const std::int64_t number : numbers) {
          step.db.query("DELETE FROM body_file WHERE id = ?1 AND owners = 0").bind(number).run();
        }
        // The number of a deleted file is not used again, also after the table is empty and the server was restarted.
        step.db.query("UPDATE number SET value = max(value, ?1) WHERE name = 'body'").bind(numbers.back()).run();
        return true;
      });
      for (const std::int64_t number : numbers) files_.remove(number);
      more = numbers.size() == kMostFiles;
    }
  } catch (const std::exception&) {
    // The files stay until a later call.
  }
  end();
  return more;
}

}  // namespace jobq::sqlite
