#include "bodies/new_body.h"

namespace jobq::sqlite {

NewBody::NewBody(BodyFiles& files, Writer& writer, std::string_view bytes)
    : files_(files), writer_(writer), bytes_(bytes) {
  if (bytes.size() <= kMostInRow) return;
  if (const auto refusal = writer.refusal()) throw StorageError(*refusal);
  try {
    file_ = files.write(bytes);
  } catch (const SqliteError& error) {
    if (error.kind() == SQLITE_FULL) writer.diskFull() = true;
    throw;
  }
}

// After an I/O error the disk may hold the step although the caller read an error: the next opening of the storage
// knows. Any other failed step is undone for certain.
NewBody::~NewBody() {
  if (!file_.isFile() || (committed_ && named_)) return;
  if (committed_ || !writer_.refusal()) files_.remove(file_.number);
}

std::int64_t NewBody::nameIn(Step& step) {
  if (!file_.isFile()) return 0;
  step.db.query("INSERT INTO body_file (id, size, owners) VALUES (?1, ?2, 1)").bind(file_.number, file_.size).run();
  named_ = true;
  return file_.number;
}

}  // namespace jobq::sqlite
